// Returns the elements whose colours break a rule of axe-core, and the styles that passed.
// Groups elements with text by the style of the text and by what lies behind it or fades it, and links in a text by
// those of the text as well. Styles in `known` passed before. axe-core looks at the longest text of each other style,
// and at all elements of a style of which that one does not decide: it leaves text undecided that something covers.
async (known) => {
  const passed = new Set(known), violations = [], behind = new Map([[null, ""]]), styles = new Map();
  const look = (element) => {
    if (behind.has(element)) return behind.get(element);
    const style = getComputedStyle(element), own = [];
    if (!/^rgba\(.*, 0\)$/.test(style.backgroundColor)) own.push(style.backgroundColor);
    for (const [name, usual] of [["backgroundImage", "none"], ["opacity", "1"], ["filter", "none"],
        ["backdropFilter", "none"], ["mixBlendMode", "normal"], ["clipPath", "none"], ["transform", "none"]])
      if (style[name] !== usual) own.push(`${name} ${style[name]}`);
    if (style.position !== "static")
      own.push(`${style.position} ${style.zIndex} ${element.localName}.${element.className}`);
    const all = look(element.parentElement) + (own.length ? `|${own.join(";")}` : "");
    behind.set(element, all);
    return all;
  };
  const read = (element) =>
    [...element.childNodes].filter((one) => one.nodeType === 3).map((one) => one.data.trim()).join("");
  const describe = (element) => {
    if (styles.has(element)) return styles.get(element);
    const style = getComputedStyle(element), own = [style.color, style.fontSize, style.fontWeight, style.textShadow];
    if (/^(?:input|select|textarea|button)$/.test(element.localName)) own.push(element.matches(":disabled"));
    const all = `${look(element)}|${own.join(";")}`;
    styles.set(element, all);
    return all;
  };
  const isBlock = (one) => /^(?:block|list-item|table.*|flex|grid|inline-block)$/.test(getComputedStyle(one).display);
  const isInText = (link) => {
    let block = link.parentElement;
    while (block !== document.body && !isBlock(block)) block = block.parentElement;
    const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    while (walker.nextNode())
      if (walker.currentNode.data.trim() && !walker.currentNode.parentElement.closest("a[href], [role=link]")) return true;
    return false;
  };
  const describeLink = (link) => {
    const style = getComputedStyle(link);
    const own = ["textDecoration", "fontStyle", "fontFamily", "display", "borderBottom", "outline"];
    return `link|${describe(link.parentElement)}|${describe(link)}|${own.map((name) => style[name]).join(";")}`;
  };
  const keys = { "color-contrast": new Map(), "link-in-text-block": new Map() }, groups = new Map();
  const add = (rule, element, key, length) => {
    keys[rule].set(element, key);
    if (passed.has(key)) return;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push([length, element]);
  };
  for (const element of document.querySelectorAll("body, body *")) {
    const text = read(element), isField = /^(?:input|select|textarea)$/.test(element.localName);
    const isLink = element.matches("a[href], [role=link]");
    if ((!text && !isField && !isLink) || !element.checkVisibility({ visibilityProperty: true })) continue;
    if (text || isField) add("color-contrast", element, describe(element), text.length);
    if (isLink && isInText(element)) add("link-in-text-block", element, describeLink(element), element.textContent.length);
  }
  const test = async (include) => {
    if (include.length === 0) return;
    const only = { runOnly: { type: "rule", values: Object.keys(keys) } };
    const result = await axe.run({ include }, { ...only, resultTypes: ["violations", "passes"], elementRef: true });
    for (const { id, nodes } of result.violations)
      for (const { element, target, failureSummary } of nodes) {
        violations.push(`${id}: ${target} ${failureSummary}`);
        groups.delete(keys[id].get(element));
      }
    for (const { id, nodes } of result.passes)
      for (const { element } of nodes)
        if (groups.delete(keys[id].get(element))) passed.add(keys[id].get(element));
  };
  await test([...groups.values()].map((group) => group.reduce((a, b) => (b[0] > a[0] ? b : a))[1]));
  await test([...groups.values()].flatMap((group) => group.map(([, element]) => element)));
  return [violations, [...passed].slice(known.length)];
}
