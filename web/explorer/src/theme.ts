/** Light or dark: what the system says, unless the reader chose. */

export type Theme = "system" | "light" | "dark";
const KEY = "fullbloom-explorer-theme";

/** The theme that was chosen here before. */
export function savedTheme(): Theme {
  try {
    const saved = localStorage.getItem(KEY);
    return saved === "light" || saved === "dark" ? saved : "system";
  } catch {
    return "system"; // storage is forbidden
  }
}

/** Shows a theme and remembers it. Plots redraw on the event `theme`. */
export function showTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // as above
  }
  window.dispatchEvent(new Event("theme"));
}

/** A colour of the style sheet, for canvases. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
