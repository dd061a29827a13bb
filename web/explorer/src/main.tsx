import { render } from "preact";

import "./style.css";
import { App } from "./app.js";

const page = document.getElementById("page");
if (page !== null) {
  page.textContent = "";
  render(<App />, page);
}
