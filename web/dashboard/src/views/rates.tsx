/** The rate of a filter at its present load, and at more. */

import type { JSX } from "preact";

import { formatCount, formatOdds, formatRate } from "../lib/format";
import { Fresh } from "../parts/state";
import { filterPath } from "../service/client";
import { type Filter, rates as decodeRates } from "../service/types";
import { usePolled } from "../state/polled";
import { useSession } from "../state/session";

const EVERY = 5_000;

export function Rates({ filter }: { filter: Filter }): JSX.Element {
  const { service } = useSession();
  const polled = usePolled(`rates ${filter.name}`, EVERY, async (signal) => (await service.send(filterPath(filter.name, "rates"), { decode: decodeRates, signal })).data);
  return (
    <section class="card">
      <h2>Under more load</h2>
      <Fresh polled={polled} what="the rates">
        {({ rates }) =>
          filter.num_added === 0 ? (
            <p class="quiet">The filter holds no key yet, so there is no load to multiply.</p>
          ) : (
            <table>
              <caption class="hidden">False-positive rate by load</caption>
              <thead>
                <tr>
                  <th scope="col">Load</th>
                  <th scope="col" class="number">
                    Keys
                  </th>
                  <th scope="col" class="number">
                    Rate
                  </th>
                  <th scope="col" class="number w2">
                    One absent key in
                  </th>
                </tr>
              </thead>
              <tbody>
                {rates.map(({ load, keys, fpr }) => (
                  <tr key={load} class={fpr !== null && fpr > filter.target_fpr * 1.01 ? "over" : ""}>
                    <th scope="row">{load}×</th>
                    <td class="number">{formatCount(keys)}</td>
                    <td class="number">{formatRate(fpr)}</td>
                    <td class="number w2">{fpr === null ? "does not hold so many" : formatOdds(fpr).replace("1 in ", "")}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Fresh>
      <p class="quiet">Rates above the target of {formatRate(filter.target_fpr)} are marked.</p>
    </section>
  );
}
