/** Catches what a view throws while it draws, so that the page says so and is never blank. */

import { Component, type ComponentChildren } from "preact";

import { Words } from "./words";

interface State {
  readonly reason: string | null;
}

export class Boundary extends Component<{ children: ComponentChildren }, State> {
  override state: State = { reason: null };

  override componentDidCatch(error: unknown): void {
    this.setState({ reason: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { reason } = this.state;
    if (reason === null) return this.props.children;
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
