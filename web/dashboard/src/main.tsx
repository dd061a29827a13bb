import { render } from "preact";

import { App } from "./app";
import { Boundary } from "./parts/boundary";
import { applyTheme, readTheme } from "./state/theme";

applyTheme(readTheme());
const place = document.getElementById("app");
if (place !== null) {
  render(
    <Boundary>
      <App />
    </Boundary>,
    place,
  );
}
