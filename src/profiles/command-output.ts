// What a command prints, shown without the secrets that it was given: a terminal, a CI log and an agent's transcript keep it.
import { withoutSecrets } from "../api/http/redaction.ts";
import { agentMode } from "./agent-mode.ts";
import type { Environment } from "./resolution.ts";

const mask = "***";

/** Longest output that is shown. Of more nothing is, because its cut end could be half a secret. */
const longestShown = 64 * 1024;

/** Shorter lines of a command's output are not taken for a secret: masking them would garble the rest. */
const shortestPrinted = 8;

export interface ShownOutput {
  readonly add: (chunk: Buffer) => void;
  /** @param printed the command's result, which may be a secret */
  readonly end: (printed: Buffer, isFailure: boolean) => void;
}

/**
 * Passes output on immediately if the command was given no secret. Otherwise at the command's end, since a secret may arrive
 * in pieces; in agent mode only if the command failed.
 */
export function shownOutput(
  show: (chunk: Buffer) => void,
  { env, given }: { readonly env: Environment; readonly given: readonly string[] },
): ShownOutput {
  const isAgent = agentMode(env) !== undefined;
  if (given.length === 0 && !isAgent) return { add: show, end: () => {} };
  const held: Buffer[] = [];
  let size = 0;
  return {
    add(chunk) {
      size += chunk.length;
      if (size <= longestShown) held.push(chunk);
    },
    end(printed, isFailure) {
      if (size === 0 || (isAgent && !isFailure)) return;
      if (size > longestShown) return show(Buffer.from("(The command printed over 64 KiB, which are not shown.)\n"));
      const lines = printed.toString("utf8").split(/\r?\n/);
      const secrets = [...given, ...lines.filter(({ length }) => length >= shortestPrinted)];
      show(withoutGiven(Buffer.concat(held), secrets));
    },
  };
}

/** Masks each secret and its base64 forms, also if wrapped into lines. */
function withoutGiven(output: Buffer, secrets: readonly string[]): Buffer {
  const given = secrets.filter((secret) => secret !== "");
  const forms = given.flatMap((secret) => [Buffer.from(secret).toString("latin1"), ...base64Forms(secret)]);
  const text = forms.reduce((shown, form) => {
    const wrapped = [...form].map((char) => char.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&")).join("[\\r\\n]*");
    return shown.replaceAll(new RegExp(wrapped, "g"), mask);
  }, output.toString("latin1"));
  return withoutSecrets(Buffer.from(text, "latin1"), given, mask);
}

/** What base64 makes of the secret itself, whatever bytes are before and after it. */
function base64Forms(secret: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    const end = Math.floor((bytes.length * 8) / 6);
    const form = bytes.toString("base64").slice(Math.ceil((before * 8) / 6), end);
    if (form.length < shortestPrinted) return [];
    return [form, form.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
