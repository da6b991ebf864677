// A certificate authority for tests, made by openssl on demand, and the certificates that it signs.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

export interface Authority {
  /** The path of the authority's own certificate, for NODE_EXTRA_CA_CERTS. */
  readonly path: string;
  /** @param names as the certificate lists them, such as `DNS:localhost` */
  sign(names: readonly string[], options?: { readonly isExpired?: boolean }): Certificate;
}

const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

export function makeAuthority(folder: string): Authority {
  const openssl = (...words: string[]): void => {
    execFileSync("openssl", words, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  };
  let count = 0;
  openssl(
    "req",
    "-x509",
    ...curve,
    "-days",
    "2",
    "-subj",
    "/CN=A test's own CA",
    "-keyout",
    "ca.key",
    "-out",
    "ca.pem",
  );
  return {
    path: join(folder, "ca.pem"),
    sign(names, { isExpired = false } = {}) {
      const name = `leaf-${(count += 1)}`;
      writeFileSync(join(folder, `${name}.ext`), `subjectAltName=${names.join(",")}\n`);
      openssl("req", ...curve, "-subj", "/CN=leaf", "-keyout", `${name}.key`, "-out", `${name}.csr`);
      const signing = ["x509", "-req", "-in", `${name}.csr`, "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
      openssl(...signing, "-days", isExpired ? "-1" : "2", "-extfile", `${name}.ext`, "-out", `${name}.pem`);
      const read = (kind: string): string => readFileSync(join(folder, `${name}.${kind}`), "utf8");
      return { key: read("key"), cert: read("pem") };
    },
  };
}
