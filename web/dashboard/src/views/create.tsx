export function CreateView(): null { return null; }
