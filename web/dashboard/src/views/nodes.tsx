export function NodesView(): null { return null; }
