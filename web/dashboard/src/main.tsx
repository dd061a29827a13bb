import { render } from "preact";

import { App } from "./app";
import { applyTheme, readTheme } from "./state/theme";

applyTheme(readTheme());
const place = document.getElementById("app");
if (place !== null) render(<App />, place);
