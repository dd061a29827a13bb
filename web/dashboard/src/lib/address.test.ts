import { describe, expect, it } from "vitest";

import { FIRST_QUERY, formatAddress, parseAddress, type View } from "./address";

describe("addresses", () => {
  it.each<View>([
    { view: "filters", query: FIRST_QUERY },
    { view: "filters", query: { search: "a&b=%#ü", sort: "operations", order: "desc", page: 7 } },
    { view: "filter", name: "logs:{eu}" },
    { view: "filter", name: "<img src=x>/../%2f\u202e😀" },
    { view: "create" },
    { view: "tokens" },
    { view: "nodes" },
  ])("lead back to the view %j", (view) => {
    expect(parseAddress(formatAddress(view))).toEqual(view);
  });

  it.each(["", "#", "#/", "#/nowhere", "#/filter/", "#/filter/%", `#/filter/${"x".repeat(129)}`, "#/create/more", "#/tokensx"])(
    "that lead nowhere show the list: %s",
    (address) => {
      expect(parseAddress(address)).toEqual({ view: "filters", query: FIRST_QUERY });
    },
  );

  it("exist for names and searches that are no text, whose lost halves of characters are replaced", () => {
    expect(formatAddress({ view: "filter", name: "a\ud800b" })).toBe("#/filter/a%EF%BF%BDb");
    expect(formatAddress({ view: "filter", name: "\udc00" })).toBe("#/filter/%EF%BF%BD");
    const query = { ...FIRST_QUERY, search: "\ud83d" };
    expect(formatAddress({ view: "filters", query })).toBe("#/?search=%EF%BF%BD");
    // A search is cut between characters.
    const long = parseAddress(`#/?search=${"x".repeat(127)}😀`);
    expect(long).toEqual({ view: "filters", query: { ...FIRST_QUERY, search: "x".repeat(127) } });
  });

  it("never hold more than the service takes", () => {
    const hostile = `#/?search=${"x".repeat(10_000)}&sort=__proto__&order=sideways&page=1e99`;
    expect(parseAddress(hostile)).toEqual({ view: "filters", query: { ...FIRST_QUERY, search: "x".repeat(128) } });
    for (const page of ["0", "-1", "1.5", "NaN", "100001", ""]) {
      expect(parseAddress(`#/?page=${page}`)).toEqual({ view: "filters", query: FIRST_QUERY });
    }
  });
});
