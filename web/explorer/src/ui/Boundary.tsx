/** Catches what a scene throws while it draws, so that the page says so and is never blank. */

import { Component, type ComponentChildren } from "preact";

export class Boundary extends Component<{ children: ComponentChildren }, { reason?: string }> {
  override componentDidCatch(error: unknown): void {
    this.setState({ reason: error instanceof Error ? error.message : String(error) });
  }

  override render(): ComponentChildren {
    const { reason } = this.state;
    if (reason === undefined) return this.props.children;
    return (
      <p class="trouble" role="alert">
        This scene stopped: {reason}.{" "}
        <button type="button" class="plain" onClick={() => { this.setState({ reason: undefined } as never); }}>
          Try again
        </button>
      </p>
    );
  }
}
