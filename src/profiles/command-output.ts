// Shows a command's output without the command's secrets, because terminals, CI logs and agents' transcripts store it.
import { withoutSecrets } from "../api/http/redaction.ts";

const mask = "***";

/** Longer output is not shown at all, because a cut could leave half a secret. */
const longestShown = 64 * 1024;

/** Shorter lines and base64 forms stay unmasked, because masking them would garble the output. */
const shortestPrinted = 8;

export interface ShownOutput {
  readonly add: (chunk: Buffer) => void;
  /** @param printed the command's result, which may be a secret */
  readonly end: (printed: Buffer, isFailure: boolean) => void;
}

/**
 * Shows output immediately if the command received no secret, otherwise at the command's end, because a secret may
 * arrive in pieces. In agent mode the output is never shown: the command may print its secret in a form that no mask
 * knows.
 */
export function shownOutput(
  show: (chunk: Buffer) => void,
  { isAgent, given }: { readonly isAgent: boolean; readonly given: readonly string[] },
): ShownOutput {
  if (given.length === 0 && !isAgent) return { add: show, end: () => {} };
  const chunks: Buffer[] = [];
  let size = 0;
  return {
    add(chunk) {
      size += chunk.length;
      if (size <= longestShown) chunks.push(chunk);
    },
    end(printed, isFailure) {
      if (size === 0 || (isAgent && !isFailure)) return;
      if (isAgent)
        return show(
          Buffer.from("(In agent mode the command's output is not shown. A person can see it at a terminal.)\n"),
        );
      if (size > longestShown) return show(Buffer.from("(The command printed over 64 KiB, which are not shown.)\n"));
      const lines = printed.toString("utf8").split(/\r?\n/);
      const secrets = [...given, ...lines.filter(({ length }) => length >= shortestPrinted)];
      show(withoutGivenSecrets(Buffer.concat(chunks), secrets));
    },
  };
}

/** Also masks base64 forms, which may be wrapped into lines. */
function withoutGivenSecrets(output: Buffer, secrets: readonly string[]): Buffer {
  const given = secrets.filter((secret) => secret !== "");
  const forms = given.flatMap((secret) => [Buffer.from(secret).toString("latin1"), ...base64Forms(secret)]);
  const text = forms.reduce((shown, form) => {
    const wrapped = [...form].map((char) => char.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&")).join("[\\r\\n]*");
    return shown.replaceAll(new RegExp(wrapped, "g"), mask);
  }, output.toString("latin1"));
  return withoutSecrets(Buffer.from(text, "latin1"), given, mask);
}

/** @returns the base64 characters that depend on the secret alone, for each number of bytes before it in a group of three */
function base64Forms(secret: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    const end = Math.floor((bytes.length * 8) / 6);
    const form = bytes.toString("base64").slice(Math.ceil((before * 8) / 6), end);
    if (form.length < shortestPrinted) return [];
    return [form, form.replaceAll("+", "-").replaceAll("/", "_")];
  });
}
