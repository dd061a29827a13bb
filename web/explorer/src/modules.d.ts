/** Modules that vite.config.ts provides. */

declare module "virtual:core" {
  /** The address of the core with the kinds of most scenes; of the whole one, where only that was built. */
  const address: string;
  export default address;
}

declare module "fullbloom?whole" {
  export * from "fullbloom";
}
