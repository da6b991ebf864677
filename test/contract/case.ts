// Defines and loads contract cases (README.md). Imports nothing from src/.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly body?: Json;
  readonly problem?: JsonObject;
}

export interface CaseRequest {
  readonly request: string;
  readonly as?: string;
  readonly region?: "us" | "eu";
  readonly headers?: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly body?: Json;
  readonly form?: Readonly<Record<string, string>>;
  readonly raw?: string;
}

export interface RequestStep extends CaseRequest {
  readonly answer: Answer | "lost";
  readonly times?: number;
  readonly keep?: Readonly<Record<string, string>>;
}

export type Step =
  | RequestStep
  | { readonly fault: string }
  | { readonly control: readonly [method: string, path: string, body?: Json] }
  | { readonly wait: number }
  | { readonly walk: CaseRequest & { readonly rows: number; readonly pages: number } };

export interface ContractCase {
  readonly name: string;
  /** The section of the API document and the rule in it, such as `4.3 rule 2`. */
  readonly section: string;
  /** A quotation from the API document. */
  readonly says: string;
  readonly steps: readonly Step[];
}

const folder = join(import.meta.dirname, "cases");

export function readCases(): { file: string; cases: ContractCase[] }[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .map((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const { cases }: { cases: ContractCase[] } = JSON.parse(text);
      return { file, cases };
    });
}

export function readShapes(): Readonly<Record<string, JsonObject>> {
  return JSON.parse(readFileSync(join(import.meta.dirname, "shapes.json"), "utf8"));
}
