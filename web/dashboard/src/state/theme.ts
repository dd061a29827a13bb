/** The theme: the system's, or one that was chosen here. */

export type Theme = "system" | "light" | "dark";

const KEY = "fullbloom-theme";

export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system"; // a browser that keeps nothing
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // a browser that keeps nothing: the theme lasts as long as the page
  }
}

/** Returns whether the page is dark now. */
export function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme === "dark" || (theme === undefined && matchMedia("(prefers-color-scheme: dark)").matches);
}
