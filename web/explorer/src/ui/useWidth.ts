import { useEffect, useRef, useState } from "preact/hooks";

/** The width of an element, followed as it changes. */
export function useWidth(initial = 720): [{ current: HTMLDivElement | null }, number] {
  const ref = useRef<HTMLDivElement | null>(null);
  const [width, setWidth] = useState(initial);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const follow = (): void => { setWidth(Math.max(200, Math.floor(element.clientWidth))); };
    follow();
    const observer = new ResizeObserver(follow);
    observer.observe(element);
    return () => { observer.disconnect(); };
  }, []);
  return [ref, width];
}
