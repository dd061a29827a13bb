/** The nodes of the registry; one that is gone for good can be removed. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { formatSpan, formatTime } from "../lib/format";
import { cut, encodePart } from "../lib/text";
import { Confirm } from "../parts/confirm";
import { MoreRows, firstRows } from "../parts/rows";
import { Fresh } from "../parts/state";
import { Words } from "../parts/words";
import { nodes as decodeNodes } from "../service/types";
import { usePolled } from "../state/polled";
import { useSession } from "../state/session";

const EVERY = 3_000;
/** Seconds of silence after which a node is shown as silent: it reports every second. */
const SILENT = 5;

export function NodesView(): JSX.Element {
  const { service, announce } = useSession();
  const polled = usePolled("nodes", EVERY, async (signal) => (await service.send("v1/nodes", { decode: decodeNodes, signal })).data.nodes);
  const [removed, setRemoved] = useState<string | null>(null);
  return (
    <>
      <h1>Nodes</h1>
      <Fresh polled={polled} what="the nodes">
        {(nodes) => (
          <>
            <div class="scroll" role="region" aria-label="Nodes" tabIndex={0}>
              <table>
                <caption class="hidden">Nodes of the registry</caption>
                <thead>
                  <tr>
                    <th scope="col">Node</th>
                    <th scope="col">State</th>
                    <th scope="col" class="w2">HTTP</th>
                    <th scope="col" class="w2">RESP</th>
                    <th scope="col" class="w3">Started</th>
                    <th scope="col"><span class="hidden">Change</span></th>
                  </tr>
                </thead>
                <tbody>
                  {firstRows(nodes).map((node) => (
                    <tr key={node.id}>
                      <th scope="row"><Words text={node.id} /></th>
                      <td>
                        {node.own ? "this one" : (node.silent ?? 0) < SILENT ? "alive" : <span class="alarm">silent for {formatSpan(1000 * (node.silent ?? 0))}</span>}
                      </td>
                      <td class="w2"><Words text={node.http} /></td>
                      <td class="w2"><Words text={node.resp === "" ? "none" : node.resp} /></td>
                      <td class="w3">{formatTime(node.started, Date.now())}</td>
                      <td class="number">
                        {!node.own && (
                          <button type="button" class="danger" onClick={() => { setRemoved(node.id); }}>
                            Remove<span class="hidden"> {cut(node.id, 128).head}</span> …
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <MoreRows count={nodes.length} />
            {nodes.length === 1 && <p class="quiet">The registry has one node. Processes that share a registry in PostgreSQL appear here.</p>}
          </>
        )}
      </Fresh>
      {removed !== null && (
        <Confirm
          title="Remove the node"
          name={removed}
          verb="Remove"
          onClose={() => { setRemoved(null); }}
          act={async () => {
            await service.send(`v1/nodes/${encodePart(removed)}`, { method: "DELETE" });
            announce(`The node ${removed} was removed.`);
            polled.reload();
          }}
        >
          <p>The names of its filters become free and their statistics are deleted. Its data folder stays as it is: if the node returns, it claims its names again.</p>
        </Confirm>
      )}
    </>
  );
}
