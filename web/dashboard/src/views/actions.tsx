/** What can be done with a filter; what cannot be taken back waits until its name is typed. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";

import { formatAddress } from "../lib/address";
import { formatBytes, formatCount, plural } from "../lib/format";
import { Confirm } from "../parts/confirm";
import { Field } from "../parts/field";
import { Failure } from "../parts/state";
import { filterPath, type Problem, toProblem } from "../service/client";
import { anything } from "../service/decode";
import type { Filter } from "../service/types";
import { findCapabilities, hasOwners, useSession } from "../state/session";
import { emptyKeys, type KeySource, StaticKeys } from "./static_keys";

/** Rate of a static filter that takes the place of an exact one. */
const DEFAULT_FPR = 0.001;

type Verb = "clear" | "rename" | "freeze" | "drop";

interface ActionProps {
  readonly filter: Filter;
  /** The filter's entity tag as the dialog opened; null in Redis, where filters have none. */
  readonly etag: string | null;
  readonly onClose: () => void;
}

export function Actions({ filter }: { filter: Filter }): JSX.Element {
  const { service, kinds, announce } = useSession();
  const [open, setOpen] = useState<{ verb: Verb; etag: string | null } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  /** Bytes of the file that came so far; null while none is downloaded. */
  const [loaded, setLoaded] = useState<number | null>(null);
  // The buttons stay enabled meanwhile: a disabled one would lose the focus, which returns to it after the dialog.
  const isBusy = useRef(false);
  const isStatic = findCapabilities(kinds, filter.kind)?.includes("static") === true;
  const isMovable = filter.backend !== "redis";

  const run = async (work: () => Promise<void>): Promise<void> => {
    if (isBusy.current) return;
    isBusy.current = true;
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(toProblem(error));
    }
    isBusy.current = false;
  };
  const start = (verb: Verb): void => {
    void run(async () => {
      const { etag } = await service.send(filterPath(filter.name), { decode: anything, query: { counted: "false" } });
      setOpen({ verb, etag });
    });
  };
  const dump = (): void => {
    void run(async () => {
      const path = filterPath(filter.name, "dump");
      const file = `${filter.name}.bloom`;
      try {
        if (service.hasToken) {
          save(URL.createObjectURL(await service.download(path, setLoaded)), file);
          announce(`The file of ${filter.name} was downloaded; fullbloom.open reads it.`);
        } else {
          // Without a token the browser needs nothing from this page, and writes the file to the disk as it comes.
          await service.send(filterPath(filter.name), { decode: anything, query: { counted: "false" } });
          save(path, file);
          announce(`The browser downloads the file of ${filter.name}; fullbloom.open reads it.`);
        }
      } finally {
        setLoaded(null);
      }
    });
  };
  const close = (): void => {
    setOpen(null);
  };
  const given = open === null ? null : { filter, etag: open.etag, onClose: close };
  return (
    <section class="card">
      <h2>Change it</h2>
      <p class="buttons start">
        <button type="button" onClick={dump}>
          Download the file
        </button>
        {isMovable && (
          <button type="button" onClick={() => { start("rename"); }}>
            Rename or swap …
          </button>
        )}
        {isMovable && !hasOwners(kinds, filter.kind) && (
          <button type="button" onClick={() => { start("freeze"); }}>
            Freeze …
          </button>
        )}
        {!isStatic && (
          <button type="button" class="danger" onClick={() => { start("clear"); }}>
            Clear …
          </button>
        )}
        <button type="button" class="danger" onClick={() => { start("drop"); }}>
          Drop …
        </button>
      </p>
      <Failure problem={problem} />
      {loaded !== null && <p class="quiet">Downloading: {formatBytes(loaded)} of about {formatBytes(filter.nbytes)} …</p>}
      {open?.verb === "clear" && given !== null && <Clear {...given} />}
      {open?.verb === "drop" && given !== null && <Drop {...given} />}
      {open?.verb === "rename" && given !== null && <Rename {...given} />}
      {open?.verb === "freeze" && given !== null && <Freeze {...given} />}
    </section>
  );
}

function Clear({ filter, etag, onClose }: ActionProps): JSX.Element {
  const { service, announce } = useSession();
  return (
    <Confirm
      title="Clear the filter"
      name={filter.name}
      verb="Clear"
      onClose={onClose}
      act={async (force) => {
        await service.send(filterPath(filter.name, "clear"), { method: "POST", headers: makeCondition(etag, force) });
        announce(`${filter.name} was cleared.`);
      }}
    >
      <p>All {plural(filter.num_added, "key")} are forgotten. The filter keeps its name and its size.</p>
    </Confirm>
  );
}

function Drop({ filter, etag, onClose }: ActionProps): JSX.Element {
  const { service, announce } = useSession();
  return (
    <Confirm
      title="Drop the filter"
      name={filter.name}
      verb="Drop"
      onClose={onClose}
      act={async (force) => {
        await service.send(filterPath(filter.name), { method: "DELETE", headers: makeCondition(etag, force) });
        announce(`${filter.name} was dropped.`);
        location.hash = "#/";
      }}
    >
      <p>
        The filter, its {plural(filter.num_added, "key")} ({formatBytes(filter.nbytes)}) and its statistics are deleted. Download its file first if you may need it again.
      </p>
    </Confirm>
  );
}

function Rename({ filter, etag, onClose }: ActionProps): JSX.Element {
  const { service, announce } = useSession();
  const [name, setName] = useState("");
  const [replace, setReplace] = useState(false);
  return (
    <Confirm
      title="Rename or swap"
      name={filter.name}
      verb={replace ? "Replace the other" : "Rename"}
      onClose={onClose}
      act={async (force) => {
        const body = { name, replace };
        await service.send(filterPath(filter.name), { method: "PATCH", body, decode: anything, headers: makeCondition(etag, force) });
        announce(`${filter.name} is now ${name}.`);
        location.hash = formatAddress({ view: "filter", name });
      }}
    >
      <Field label="New name" value={name} onValue={setName} hint="Letters, digits and . _ : - { }, at most 128" />
      <label class="check">
        <input type="checkbox" checked={replace} onChange={(event) => { setReplace(event.currentTarget.checked); }} />
        Replace the filter that has this name
      </label>
      <p class="quiet">
        The swap is one step: clients find either the old filter or this one under the new name.{replace && " The filter that has the name now is dropped."}
      </p>
    </Confirm>
  );
}

function Freeze({ filter, etag, onClose }: ActionProps): JSX.Element {
  const { service, announce } = useSession();
  const [name, setName] = useState(filter.name);
  const [keys, setKeys] = useState<KeySource>(emptyKeys);
  const isOwn = name === filter.name;
  // An exact filter has no rate that a static one could keep.
  const target = filter.target_fpr > 0 ? filter.target_fpr : DEFAULT_FPR;
  return (
    <Confirm
      title="Freeze"
      name={filter.name}
      verb="Build the static filter"
      onClose={onClose}
      act={async (force) => {
        const query = { kind: keys.kind, fpr: target, replace: isOwn ? "true" : "false" };
        const headers = { ...(isOwn ? makeCondition(etag, force) : {}), "content-type": "text/plain" };
        await service.send(filterPath(name, "freeze"), { method: "POST", query, headers, body: keys.file ?? keys.text, decode: anything, isLong: true });
        announce(`${name} is a static filter now.`);
        location.hash = formatAddress({ view: "filter", name });
      }}
    >
      <p>
        A static filter is smaller and faster, and takes no further key. A filter does not keep its keys, so give all of them: it holds about{" "}
        {formatCount(filter.num_added)}.
      </p>
      <StaticKeys value={keys} onValue={setKeys} target={target} />
      <Field label="Name of the static filter" value={name} onValue={setName} hint={isOwn ? "It takes the place of this filter, in one step." : "This filter stays as it is."} />
    </Confirm>
  );
}

/** Returns the header by which a change is refused if the filter was changed since its tag was read. */
function makeCondition(etag: string | null, force: boolean): Record<string, string> {
  return etag === null || force ? {} : { "if-match": etag };
}

/** Has the browser save what is at an address, and frees the address if it is one of this page's memory. */
function save(address: string, name: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  window.setTimeout(() => {
    URL.revokeObjectURL(address);
  }, 60_000);
}
