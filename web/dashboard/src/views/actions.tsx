export function Actions(_: { filter: unknown }): null { return null; }
