// The part of the tar format (POSIX ustar) that packages need: what is in one, and one whose bytes depend on nothing
// but its files.
import { gunzipSync, gzipSync } from "node:zlib";

const block = 512;

/** @returns the files of a .tgz by path: mode and content; only what npm writes is understood */
export function filesIn(tgz) {
  const tar = gunzipSync(tgz);
  const files = new Map();
  for (let at = 0; at + block <= tar.length && tar[at] !== 0; ) {
    const text = (from, length) => tar.toString("utf8", at + from, at + from + length).split("\0", 1)[0];
    const size = Number.parseInt(text(124, 12), 8);
    const [prefix, name] = [text(345, 155), text(0, 100)];
    const content = tar.subarray(at + block, at + block + size);
    if (Number.isNaN(size) || content.length !== size) throw new Error(`the archive is damaged at byte ${at}`);
    files.set(prefix ? `${prefix}/${name}` : name, { mode: Number.parseInt(text(100, 8), 8), content });
    at += block + Math.ceil(size / block) * block;
  }
  return files;
}

/**
 * @param files `{ path, mode, content }` in the order that they get
 * @returns a .tgz without owners and with no time but 1970
 */
export function tgzOf(files) {
  const parts = files.flatMap(({ path, mode, content }) => {
    const padding = Buffer.alloc((block - (content.length % block)) % block);
    return [headerOf({ path, mode, size: content.length }), content, padding];
  });
  return gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * block)]), { level: 9 });
}

function headerOf({ path, mode, size }) {
  if (Buffer.byteLength(path) > 100) throw new Error(`${path} is too long for an archive`);
  const header = Buffer.alloc(block);
  const octal = (value, at, length) => header.write(value.toString(8).padStart(length - 1, "0"), at);
  header.write(path, 0);
  octal(mode, 100, 8);
  for (const at of [108, 116]) octal(0, at, 8);
  octal(size, 124, 12);
  octal(0, 136, 12);
  header.write("        0", 148);
  header.write("ustar", 257);
  header.write("00", 263);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}
