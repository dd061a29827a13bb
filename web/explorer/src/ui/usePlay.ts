import { useEffect, useRef, useState } from "preact/hooks";

/** A number that climbs while it plays: `step` is called some 20 times a second until it returns false. */
export function usePlay(step: () => boolean): { readonly playing: boolean; readonly toggle: () => void } {
  const [playing, setPlaying] = useState(false);
  const latest = useRef(step);
  latest.current = step;
  useEffect(() => {
    if (!playing) return;
    const timer = setInterval(() => {
      if (!latest.current()) setPlaying(false);
    }, 50);
    return () => { clearInterval(timer); };
  }, [playing]);
  return { playing, toggle: () => { setPlaying((old) => !old); } };
}
