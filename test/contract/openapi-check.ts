// Checks status, headers and body of responses against the published OpenAPI document of their operation.
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

export function operationsOf(document: Document): { name: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
  );
}

interface PathOperation {
  readonly method: string;
  readonly path: string;
  readonly pattern: RegExp;
  readonly operation: Operation;
}

interface PreparedDocument {
  readonly document: Document;
  readonly operations: readonly PathOperation[];
  readonly ajv: Ajv2020;
  /** Validators by the schema's text, because most responses share a few schemas. */
  readonly validators: Map<string, ValidateFunction>;
}

function prepared(document: Document): PreparedDocument {
  const operations = operationsOf(document).map(({ name, operation }) => {
    const [method, path] = name.split(" ") as [string, string];
    return { method, path, pattern: patternOf(path), operation };
  });
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  return { document, operations, ajv, validators: new Map() };
}

function validatorOf({ document, ajv, validators }: PreparedDocument, schema: object): ValidateFunction {
  const text = JSON.stringify(schema);
  const cached = validators.get(text);
  if (cached) return cached;
  const validate = ajv.compile({ ...schema, components: document.components });
  validators.set(text, validate);
  return validate;
}

const problem = { $ref: "#/components/schemas/Problem" };

/** The paths of the published documents, which no document describes (§4.5). */
const publishedPath =
  /^\/(?:v1-reference|api\/v1-reference|oauth)\/(?:.+\/)?openapi[^/]*\.json$|^\/v1-reference\/openapi\/[^/]+\.json$/;

export class OpenApiCheck {
  readonly #documents: readonly PreparedDocument[];
  /** The kinds of checked responses, such as `GET /v1/entities 200`. */
  readonly responseKinds = new Set<string>();

  constructor(documents: readonly Document[]) {
    this.#documents = documents.map(prepared);
  }

  /** @returns violations. A response outside the documented operations must be a published document or an error (§7). */
  complaintsAbout(played: Played): string[] {
    for (const read of this.#documents)
      for (const { method, path, pattern, operation } of read.operations)
        if (method === played.method && pattern.test(played.path))
          return this.#compare(played, { read, operation, name: `${method} ${path} ${played.status}` });
    if (played.status === 200 && publishedPath.test(played.path)) return this.#published(played);
    return this.complaintsAboutProblem(played, `no operation ${played.status}`);
  }

  /** @returns violations: the body must be an error object with the response's status and request id (§7) */
  complaintsAboutProblem(played: Played, name: string): string[] {
    this.responseKinds.add(name);
    const validate = validatorOf(this.#documents[0]!, problem);
    const body = parsed(played.text);
    if (!validate(body)) return [`${name}: ${JSON.stringify(validate.errors)} in ${played.text.slice(0, 1000)}`];
    const { status, request_id } = body as { status: number; request_id: string };
    if (status !== played.status) return [`${name}: its body says ${status}`];
    return request_id === played.headers["request-id"] ? [] : [`${name}: request_id is not the header's`];
  }

  #published(played: Played): string[] {
    this.responseKinds.add(`${played.method} published document 200`);
    const { openapi } = (parsed(played.text) ?? {}) as { openapi?: string };
    return openapi === "3.1.0" ? [] : [`${played.path}: no OpenAPI document`];
  }

  #compare(played: Played, given: { read: PreparedDocument; operation: Operation; name: string }): string[] {
    const { read, operation, name } = given;
    this.responseKinds.add(name);
    const response = operation.responses[played.status];
    if (!response) return [`${name}: the document knows no such status`];
    const complaints = Object.entries(response.headers ?? {}).flatMap(([header, { schema }]) => {
      const validate = validatorOf(read, schema);
      const value = played.headers[header.toLowerCase()];
      return value !== undefined && validate(value) ? [] : [`${name}: header ${header} is ${value}`];
    });
    const schema = response.content?.["application/json"]?.schema;
    if (!schema) return complaints;
    if ("$ref" in schema && schema.$ref === problem.$ref)
      return [...complaints, ...this.complaintsAboutProblem(played, name)];
    const validate = validatorOf(read, schema);
    if (validate(parsed(played.text))) return complaints;
    return [...complaints, `${name}: ${JSON.stringify(validate.errors)} in ${played.text.slice(0, 1000)}`];
  }
}

function patternOf(template: string): RegExp {
  return new RegExp(`^${template.replace(/\{[^}]+\}/g, "[^/]+")}$`);
}

/** @returns undefined, which no schema allows, for invalid JSON */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
