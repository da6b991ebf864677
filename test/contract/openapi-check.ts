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

/** An operation as answers are looked up: by method and pattern of the path. */
interface Met {
  readonly method: string;
  readonly path: string;
  readonly pattern: RegExp;
  readonly operation: Operation;
}

interface Readable {
  readonly document: Document;
  readonly operations: readonly Met[];
}

function readable(document: Document): Met[] {
  return operationsOf(document).map(({ name, operation }) => {
    const [method, path] = name.split(" ") as [string, string];
    return { method, path, pattern: patternOf(path), operation };
  });
}

/** Where documents themselves are published; they have no operation (§4.5). */
const publishedPath =
  /^\/(?:v1-reference|api\/v1-reference|oauth)\/(?:.+\/)?openapi[^/]*\.json$|^\/v1-reference\/openapi\/[^/]+\.json$/;

export class OpenApiCheck {
  readonly #documents: readonly Readable[];
  readonly #validators = new Map<string, ValidateFunction>();
  /** `GET /v1/entities 200` of every answer that was held against its operation. */
  readonly met = new Set<string>();

  constructor(documents: readonly Document[]) {
    this.#documents = documents.map((document) => ({ document, operations: readable(document) }));
  }

  /** What the answer does that no document allows. To what is no operation there is nothing but the error object (§7). */
  complaintsAbout(played: Played): string[] {
    for (const { document, operations } of this.#documents)
      for (const { method, path, pattern, operation } of operations)
        if (method === played.method && pattern.test(played.path))
          return this.#compare(played, { document, operation, name: `${method} ${path} ${played.status}` });
    if (played.status === 200 && publishedPath.test(played.path)) return this.#published(played);
    return this.complaintsAboutProblem(played, `no operation ${played.status}`);
  }

  /** An error object and nothing else, with the status of the answer and its request id (§7). */
  complaintsAboutProblem(played: Played, name: string): string[] {
    this.met.add(name);
    const { document } = this.#documents[0]!;
    const validate = this.#validator("problem", { document, schema: { $ref: "#/components/schemas/Problem" } });
    const body = parsed(played.text);
    if (!validate(body)) return [`${name}: ${JSON.stringify(validate.errors)} in ${played.text.slice(0, 1000)}`];
    const { status, request_id } = body as { status: number; request_id: string };
    if (status !== played.status) return [`${name}: its body says ${status}`];
    return request_id === played.headers["request-id"] ? [] : [`${name}: request_id is not the header's`];
  }

  #published(played: Played): string[] {
    this.met.add(`${played.method} published document 200`);
    const { openapi } = (parsed(played.text) ?? {}) as { openapi?: string };
    return openapi === "3.1.0" ? [] : [`${played.path}: no OpenAPI document`];
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
    if (validate(parsed(played.text))) return complaints;
    return [...complaints, `${name}: ${JSON.stringify(validate.errors)} in ${played.text.slice(0, 1000)}`];
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

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replace(/\{[^}]+\}/g, "[^/]+")}$`);
}

/** @returns undefined, which no schema allows, where the text is no JSON */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
