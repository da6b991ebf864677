// libsodium's sealed box (`crypto_box_seal`), which GitHub requires.
import { randomBytes } from "node:crypto";
import { hsalsa, xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { x25519 } from "@noble/curves/ed25519.js";
import { blake2b } from "@noble/hashes/blake2.js";

export const publicKeyBytes = 32;
const nonceBytes = 24;

export function sealedBox(message: Buffer, publicKey: Buffer): Buffer {
  const secretKey = randomBytes(publicKeyBytes);
  const own = x25519.getPublicKey(secretKey);
  const nonce = blake2b(Buffer.concat([own, publicKey]), { dkLen: nonceBytes });
  const box = xsalsa20poly1305(sharedKey(x25519.getSharedSecret(secretKey, publicKey)), nonce);
  return Buffer.concat([own, box.encrypt(message)]);
}

/** The key of `crypto_box`: HSalsa20 of the shared point with a zero nonce. */
function sharedKey(point: Uint8Array): Uint8Array {
  const sigma = new Uint32Array(Uint8Array.from(Buffer.from("expand 32-byte k")).buffer);
  const key = new Uint32Array(Uint8Array.from(point).buffer);
  const out = new Uint32Array(key.length);
  hsalsa(sigma, key, new Uint32Array(sigma.length), out);
  return new Uint8Array(out.buffer);
}
