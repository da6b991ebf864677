// Holds answers against the published OpenAPI documents: status, headers and body of the operation that a path is.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Played } from "./player.ts";

interface Response {
  readonly headers?: Readonly<Record<string, { readonly schema: object }>>;
  readonly content?: { readonly "application/json"?: { readonly schema: object } };
}

type Operation = Readonly<Record<string, unknown>> & {
  readonly responses: Readonly<Record<string, Response>>;
};

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: object;
  readonly info: Readonly<Record<string, unknown>>;
}

export const documentPaths = [
  "/v1-reference/openapi-v1.json",
  "/api/v1-reference/openapi.json",
  "/oauth/openapi.json",
] as const;

export async function readDocuments(baseUrl: string): Promise<Document[]> {
  const read = async (path: string): Promise<Document> => (await fetch(baseUrl + path)).json() as Promise<Document>;
  return await Promise.all(documentPaths.map(read));
}

/** Every operation of a document with its method and path. */
export function operationsOf(document: Document): { name: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  );
}

export class OpenApiCheck {
  readonly #documents: readonly Document[];
  readonly #validators = new Map<string, ValidateFunction>();
  /** `GET /v1/entities 200` of every answer that was held against its operation. */
  readonly met = new Set<string>();

  constructor(documents: readonly Document[]) {
    this.#documents = documents;
  }

  /** What the answer does that no document allows. An answer to what is no operation has nothing to keep to. */
  complaintsAbout(played: Played): string[] {
    for (const document of this.#documents)
      for (const [path, item] of Object.entries(document.paths)) {
        const operation = item[played.method.toLowerCase()];
        if (operation && matches(path, played.path))
          return this.#compare(played, { document, operation, name: `${played.method} ${path} ${played.status}` });
      }
    return [];
  }

  #compare(played: Played, given: { document: Document; operation: Operation; name: string }): string[] {
    const { document, operation, name } = given;
    this.met.add(name);
    const response = operation.responses[played.status];
    if (!response) return [`${name}: the document knows no such status`];
    const complaints = Object.entries(response.headers ?? {}).flatMap(([header, { schema }]) => {
      const validate = this.#validator(`${name} ${header}`, { document, schema });
      const value = played.headers[header.toLowerCase()];
      return value !== undefined && validate(value) ? [] : [`${name}: header ${header} is ${value}`];
    });
    const schema = response.content?.["application/json"]?.schema;
    if (!schema) return complaints;
    const validate = this.#validator(name, { document, schema });
    if (validate(JSON.parse(played.text))) return complaints;
    return [...complaints, `${name}: ${JSON.stringify(validate.errors)} in ${played.text}`];
  }

  #validator(name: string, given: { document: Document; schema: object }): ValidateFunction {
    const known = this.#validators.get(name);
    if (known) return known;
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    const validate = ajv.compile({ ...given.schema, components: given.document.components });
    this.#validators.set(name, validate);
    return validate;
  }
}

function matches(template: string, path: string): boolean {
  return new RegExp(`^${template.replace(/\{[^}]+\}/g, "[^/]+")}$`).test(path);
}
