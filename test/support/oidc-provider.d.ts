// The types of oidc-provider that the tests use; the package has no types.
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): RequestListener;
  }

  export const errors: { readonly InvalidTarget: new () => Error };
}
