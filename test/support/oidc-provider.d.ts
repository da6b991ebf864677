// As much of oidc-provider's shape as the tests use; the package carries no types of its own.
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export default class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): RequestListener;
  }

  export const errors: { readonly InvalidTarget: new () => Error };
}
