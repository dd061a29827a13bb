/** The page: the list of scenes, the scene of the address, the theme. */

import type { ComponentType, VNode } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { type Fields, format, readFields, split } from "./address.js";
import { loadCore, loadRest } from "./core/load.js";
import { SCENES } from "./scenes/index.js";
import type { AnyScene, Entry } from "./scenes/scene.js";
import { type Theme, savedTheme, showTheme } from "./theme.js";
import { Boundary } from "./ui/Boundary.js";

/** Values of a scene whose fields only it knows. */
type Values = Record<string, unknown>;

/** The scene that the address names, or the first. */
function current(): Entry {
  const { scene } = split(location.hash);
  return SCENES.find((entry) => entry.name === scene) ?? (SCENES[0] as Entry);
}

/** The address as scene and query; changes with it. */
function useAddress(): string {
  const [fragment, setFragment] = useState(location.hash);
  useEffect(() => {
    const follow = (): void => { setFragment(location.hash); };
    window.addEventListener("hashchange", follow);
    return () => { window.removeEventListener("hashchange", follow); };
  }, []);
  return fragment;
}

/** What became of loading a scene. */
type Loaded =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly name: string; readonly scene: AnyScene }
  | { readonly state: "failed"; readonly reason: string };

/** Loads the core and the file of a scene. */
function useScene(entry: Entry): { loaded: Loaded; again: () => void } {
  const [loaded, setLoaded] = useState<Loaded>({ state: "loading" });
  const [attempt, setAttempt] = useState(0);
  const again = useCallback(() => { setAttempt((before) => before + 1); }, []);
  useEffect(() => {
    let wanted = true;
    setLoaded({ state: "loading" });
    Promise.all([entry.load(), loadCore()]).then(
      ([{ scene }]) => {
        if (wanted) setLoaded({ state: "ready", name: entry.name, scene });
        loadRest(SCENES.map((other) => other.load));
      },
      (error: unknown) => {
        if (wanted) setLoaded({ state: "failed", reason: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => { wanted = false; };
  }, [entry, attempt]);
  const isFailed = loaded.state === "failed";
  useEffect(() => {
    if (!isFailed) return;
    window.addEventListener("online", again);
    return () => { window.removeEventListener("online", again); };
  }, [isFailed, again]);
  return { loaded: loaded.state === "ready" && loaded.name !== entry.name ? { state: "loading" } : loaded, again };
}

/** A scene with the values of the address. */
function Stage({ entry, scene, fragment }: { entry: Entry; scene: AnyScene; fragment: string }): VNode {
  const fields = scene.fields as Fields<Values>;
  const [values, setValues] = useState(() => readFields(fields, split(fragment).query));
  const written = useRef(fragment);
  const timer = useRef<number | undefined>(undefined);

  useEffect(() => {
    // Another address, not the one that was written here.
    if (fragment !== written.current) {
      written.current = fragment;
      setValues(readFields(fields, split(fragment).query));
    }
  }, [fragment, fields]);

  const change = useCallback((some: Partial<Values>) => {
    setValues((old) => ({ ...old, ...some }));
  }, []);

  useEffect(() => {
    // Browsers refuse addresses that change with every letter.
    window.clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const next = format(entry.name, fields, values);
      if (split(location.hash).scene !== entry.name && location.hash !== "") return;
      if (next !== location.hash && !(location.hash === "" && next === `#${entry.name}`)) {
        written.current = next;
        history.replaceState(null, "", next);
      }
    }, 200);
    return () => { window.clearTimeout(timer.current); };
  }, [values, entry, fields]);

  const Figure = scene.Figure as ComponentType<{ values: Values; change: typeof change }>;
  return (
    <>
      <p class="sentence">{scene.sentence}</p>
      <Boundary key={entry.name}>
        <Figure values={values} change={change} />
      </Boundary>
      <p class="attempt">
        <strong>Try it.</strong> {scene.attempt}
      </p>
    </>
  );
}

/** A button that copies the address. */
function Share(): VNode {
  const [note, setNote] = useState("");
  const copy = (): void => {
    // The address is written a moment after the last change.
    window.setTimeout(() => {
      Promise.resolve(navigator.clipboard as Clipboard | undefined)
        .then((clipboard) => clipboard?.writeText(location.href) ?? Promise.reject(new Error("no clipboard")))
        .then(
          () => { setNote("Link copied"); },
          () => { setNote("Copy the address of this page: it holds the scene"); },
        );
    }, 250);
    window.setTimeout(() => { setNote(""); }, 4000);
  };
  return (
    <span class="share">
      <button type="button" class="plain" onClick={copy}>Copy link</button>
      <span class="note" role="status">{note}</span>
    </span>
  );
}

/** The switch of the theme. */
function ThemeSwitch(): VNode {
  const [theme, setTheme] = useState<Theme>(savedTheme);
  const choose = (next: Theme): void => {
    setTheme(next);
    showTheme(next);
  };
  return (
    <label class="theme">
      <span class="hidden">Theme</span>
      <select value={theme} onChange={(event) => { choose(event.currentTarget.value as Theme); }}>
        <option value="system">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

/** The list of scenes. */
function Scenes({ now }: { now: Entry }): VNode {
  return (
    <ol class="scenes">
      {SCENES.map((entry) => (
        <li key={entry.name}>
          <a href={`#${entry.name}`} aria-current={entry === now ? "page" : undefined}>{entry.title}</a>
        </li>
      ))}
    </ol>
  );
}

export function App(): VNode {
  const fragment = useAddress();
  const entry = current();
  const { loaded, again } = useScene(entry);
  const heading = useRef<HTMLHeadingElement>(null);
  const [first, setFirst] = useState(entry.name);
  const menu = useRef<HTMLDetailsElement>(null);
  const at = SCENES.indexOf(entry);
  const [before, after] = [SCENES[at - 1], SCENES[at + 1]];

  useEffect(() => {
    document.title = `${entry.title} · Fullbloom explorer`;
    if (menu.current !== null) menu.current.open = false;
    if (entry.name === first) return;
    // Whoever went on by keyboard or hears the page is at the top of the new scene.
    setFirst("");
    window.scrollTo({ top: 0 });
    heading.current?.focus({ preventScroll: true });
  }, [entry.name]);

  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); heading.current?.focus(); }}>
        Skip to the scene
      </a>
      <header class="top">
        <a class="brand" href={`#${SCENES[0]?.name ?? ""}`}>
          <span class="logo" aria-hidden="true" />
          Fullbloom <em>explorer</em>
        </a>
        <div class="tools">
          <Share />
          <ThemeSwitch />
        </div>
      </header>
      <nav class="rail" aria-label="Scenes">
        <Scenes now={entry} />
      </nav>
      <nav class="drawer" aria-label="Scenes, as a menu">
        <details ref={menu}>
          <summary>
            {at + 1} of {SCENES.length}: {entry.title}
          </summary>
          <Scenes now={entry} />
        </details>
      </nav>
      <main id="main" data-scene={entry.name} data-ready={loaded.state === "ready" ? "true" : "false"}>
        <p class="number" aria-hidden="true">
          {at + 1}<span> / {SCENES.length}</span>
        </p>
        <h1 ref={heading} tabIndex={-1}>{entry.title}</h1>
        {loaded.state === "loading" && <p class="waiting" role="status">Loading the filters …</p>}
        {loaded.state === "failed" && (
          <p class="trouble" role="alert">
            The scene did not load: {loaded.reason}. It needs JavaScript modules and WebAssembly.{" "}
            <button type="button" class="plain" onClick={again}>Try again</button>
          </p>
        )}
        {loaded.state === "ready" && <Stage key={entry.name} entry={entry} scene={loaded.scene} fragment={fragment} />}
        <nav class="turn" aria-label="Previous and next scene">
          {before === undefined ? <span /> : <a href={`#${before.name}`} rel="prev">← {before.title}</a>}
          {after === undefined ? <span /> : <a href={`#${after.name}`} rel="next">{after.title} →</a>}
        </nav>
      </main>
      <footer class="foot">
        The filters run in this page: the core of Fullbloom, compiled to WebAssembly. Nothing that you type leaves it.
      </footer>
    </div>
  );
}
