// The part of oidc-provider's types that the tests use; the package has none.
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): RequestListener;
  }

  export const errors: { readonly InvalidTarget: new () => Error };
}
