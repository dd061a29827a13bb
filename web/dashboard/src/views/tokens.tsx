export function TokensView(): null { return null; }
