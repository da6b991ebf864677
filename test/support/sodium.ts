// Uses libsodium, an independent implementation, to open the sealed boxes that integ makes.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

/** Prefers the system's Python: `python3` in PATH may be the slow wrapper script of a version manager. */
export const python = existsSync("/usr/bin/python3") ? "/usr/bin/python3" : "python3";

const script = `
import base64, ctypes, ctypes.util, json, sys
sodium = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
sodium.sodium_init()
def opened(box):
    sealed, public, secret = (base64.b64decode(box[name]) for name in ("sealed", "public", "secret"))
    length = len(sealed) - 48
    out = ctypes.create_string_buffer(max(1, length))
    if length < 0 or sodium.crypto_box_seal_open(out, sealed, ctypes.c_ulonglong(len(sealed)), public, secret) != 0:
        return None
    return base64.b64encode(out.raw[:length]).decode()
print(json.dumps([opened(box) for box in json.load(sys.stdin)]))
`;

export interface Box {
  readonly sealed: string;
  readonly public: string;
  readonly secret: string;
}

/** The fields of a box are in base64. @returns each message, or undefined for a box that its key does not open */
export function openSealed(boxes: readonly Box[]): (string | undefined)[] {
  const { status, stdout, stderr } = spawnSync(python, ["-c", script], {
    input: JSON.stringify(boxes),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`libsodium: ${stderr}`);
  return (JSON.parse(stdout) as (string | null)[]).map((text) =>
    text === null ? undefined : Buffer.from(text, "base64").toString("utf8"),
  );
}
