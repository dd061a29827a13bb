/** The frame around all views: navigation, the service's own state, the token, announcements. */

import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { formatAddress, parseAddress, type View } from "./lib/address";
import { backoff } from "./lib/backoff";
import { formatBytes, plural } from "./lib/format";
import { Boundary } from "./parts/boundary";
import { AskToken } from "./parts/token";
import { Words } from "./parts/words";
import { Service, toProblem } from "./service/client";
import { type About, about, type Kind, kinds as decodeKinds } from "./service/types";
import { usePolled } from "./state/polled";
import { type Session, SessionContext, useSession } from "./state/session";
import { applyTheme, readTheme, type Theme } from "./state/theme";
import { CreateView } from "./views/create";
import { FilterView } from "./views/filter";
import { FiltersView } from "./views/filters";
import { NodesView } from "./views/nodes";
import { TokensView } from "./views/tokens";

const LINKS = [
  ["filters", "#/", "Filters"],
  ["create", "#/create", "Create"],
  ["tokens", "#/tokens", "Tokens"],
  ["nodes", "#/nodes", "Nodes"],
] as const;

export function App(): JSX.Element {
  const view = useView();
  const [service] = useState(() => new Service());
  const [generation, setGeneration] = useState(0);
  const [asked, setAsked] = useState<"no" | "first" | "again">("no");
  const [kinds, setKinds] = useState<readonly Kind[]>([]);
  const [sentence, setSentence] = useState("");

  useEffect(() => {
    service.onUnauthorized = (_problem, hadToken) => {
      // A request that was sent before a token was given may fail after it.
      setAsked((before) => (hadToken ? "again" : before === "no" ? "first" : before));
    };
  }, [service]);
  const useToken = useCallback(
    (token: string | null) => {
      service.useToken(token);
      setAsked("no");
      setGeneration((before) => before + 1);
    },
    [service],
  );
  const announce = useCallback((text: string) => {
    setSentence(text);
  }, []);
  useEffect(() => {
    const control = new AbortController();
    let timer: number | undefined;
    const load = (failures: number): void => {
      service.send("v1/kinds", { decode: decodeKinds, signal: control.signal }).then(
        ({ data }) => {
          setKinds(data.kinds);
        },
        (error: unknown) => {
          // The views say what is wrong; without the kinds they leave some words and buttons out.
          const { status, retryAfter } = toProblem(error);
          if (control.signal.aborted || status === 401) return;
          timer = window.setTimeout(load, backoff(failures, retryAfter, Math.random()), failures + 1);
        },
      );
    };
    load(1);
    return () => {
      control.abort();
      window.clearTimeout(timer);
    };
  }, [service, generation]);
  const session: Session = useMemo(
    () => ({ service, generation, kinds, useToken, announce }),
    [service, generation, kinds, useToken, announce],
  );
  return (
    <SessionContext.Provider value={session}>
      <Frame
        view={view}
        onToken={() => {
          setAsked("first");
        }}
      >
        <div role="status" class={sentence === "" ? "" : "done"}>
          {sentence !== "" && (
            <>
              <Words text={sentence} most={300} />
              <button
                type="button"
                class="close"
                aria-label="Dismiss"
                onClick={() => {
                  setSentence("");
                }}
              >
                ×
              </button>
            </>
          )}
        </div>
        <Boundary key={formatAddress(view)}>
          <Current view={view} />
        </Boundary>
      </Frame>
      {asked !== "no" && (
        <AskToken
          key={`${asked}${String(generation)}`}
          isRejected={asked === "again"}
          onToken={useToken}
          onClose={() => {
            setAsked("no");
          }}
        />
      )}
    </SessionContext.Provider>
  );
}

/** Header and footer; the service's own state is read now and then. */
function Frame({ view, onToken, children }: { view: View; onToken: () => void; children: ComponentChildren }): JSX.Element {
  const { service } = useSession();
  const polled = usePolled("about", 10_000, async (signal) => (await service.send("v1/service", { decode: about, signal })).data);
  const { data } = polled;
  return (
    <>
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header>
        <a class="brand" href="#/">
          <Mark /> Fullbloom
        </a>
        <nav aria-label="Views">
          {LINKS.map(([name, address, label]) => (
            <a key={name} href={address} aria-current={view.view === name ? "page" : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <div class="aside">
          {data?.pages.includes("/explore/") === true && <a href="explore/">Explorer</a>}
          <a href="docs">API</a>
          <ThemeChoice />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {data !== null && data.trouble !== null && (
          <p class="notice" role="alert">
            Changes are refused: <Words text={data.trouble} most={300} />
          </p>
        )}
        {children}
      </main>
      <footer>
        {data !== null && (
          <Boundary key={polled.at} fallback={<p>The state of the service cannot be shown.</p>}>
            <State data={data} isStale={polled.problem !== null} />
          </Boundary>
        )}
        <p>
          <button type="button" class="link" onClick={onToken}>
            {service.hasToken ? "Use another token" : "Use a token"}
          </button>
        </p>
      </footer>
    </>
  );
}

/** The sentence of the footer. */
function State({ data, isStale }: { data: About; isStale: boolean }): JSX.Element {
  return (
    <p class={isStale ? "stale" : ""}>
      Fullbloom <Words text={data.version} most={20} plain />, node <Words text={data.node} most={40} plain />,{" "}
      {plural(data.filters, "filter")} with {formatBytes(data.nbytes)}, durability <Words text={data.durability ?? "off"} most={20} plain />.
    </p>
  );
}

function Current({ view }: { view: View }): JSX.Element {
  switch (view.view) {
    case "filters":
      return <FiltersView query={view.query} />;
    case "filter":
      return <FilterView key={view.name} name={view.name} />;
    case "create":
      return <CreateView />;
    case "tokens":
      return <TokensView />;
    case "nodes":
      return <NodesView />;
  }
}

/** The view of the address; a view of another kind or filter takes the focus, as a new page would. */
function useView(): View {
  const [view, setView] = useState(() => parseAddress(location.hash));
  const last = useRef(view);
  useEffect(() => {
    const read = (): void => {
      if (location.hash === "#main") return; // the link past the navigation
      const next = parseAddress(location.hash);
      const before = last.current;
      const isOther = next.view !== before.view || (next.view === "filter" && before.view === "filter" && next.name !== before.name);
      last.current = next;
      setView(next);
      if (isOther) {
        window.scrollTo(0, 0);
        document.getElementById("main")?.focus({ preventScroll: true });
      }
    };
    window.addEventListener("hashchange", read);
    return () => {
      window.removeEventListener("hashchange", read);
    };
  }, []);
  return view;
}

function ThemeChoice(): JSX.Element {
  const [theme, setTheme] = useState<Theme>(readTheme);
  return (
    <label>
      <span class="hidden">Theme</span>
      <select
        value={theme}
        onChange={(event) => {
          const chosen = event.currentTarget.value as Theme;
          applyTheme(chosen);
          setTheme(chosen);
          window.dispatchEvent(new Event("themechange"));
        }}
      >
        <option value="system">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
      <rect width="16" height="16" rx="3" class="mark" />
      <rect x="3" y="3" width="4" height="4" rx="1" class="bit" />
      <rect x="9" y="9" width="4" height="4" rx="1" class="bit" />
      <rect x="9" y="3" width="4" height="4" rx="1" class="bit dim" />
      <rect x="3" y="9" width="4" height="4" rx="1" class="bit dim" />
    </svg>
  );
}
