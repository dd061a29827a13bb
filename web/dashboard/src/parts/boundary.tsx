/** Catches what a view throws while it draws, so that the page says so and is never blank. */

import { Component, type ComponentChildren } from "preact";

import { Words } from "./words";

interface State {
  readonly reason: string | null;
}

interface Props {
  readonly children: ComponentChildren;
  /** Drawn instead of the report, for parts that are not a view. */
  readonly fallback?: ComponentChildren;
}

export class Boundary extends Component<Props, State> {
  override state: State = { reason: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ reason: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { reason } = this.state;
    if (reason === null) return this.props.children;
    if (this.props.fallback !== undefined) return this.props.fallback;
    return (
      <>
        <h1>An error of this page</h1>
        <p class="notice" role="alert">
          This view stopped: <Words text={reason} most={200} plain />.{" "}
          <button
            type="button"
            onClick={() => {
              this.setState({ reason: null });
            }}
          >
            Try again
          </button>
        </p>
      </>
    );
  }
}
