// Every sync in src/, with the data that it saves in a power cut. `node test/crash/remove-syncs.mjs` runs the scenes without
// it: they must fail, unless `unseen` gives the reason.
export interface Sync {
  readonly file: string;
  readonly call: string;
  /** The number of this sync among equal statements of the file. The default is 1. */
  readonly nth?: number;
  readonly keeps: string;
  /** The scenes that run without the sync, as a pattern for `INTEG_TEST_SCENES`. */
  readonly scenes: string;
  /** Why no state of the disk reveals the missing sync. */
  readonly unseen?: string;
}

export const syncs: readonly Sync[] = [
  {
    file: "journal/file/record-file.ts",
    call: "fs.fsyncSync(fd);",
    keeps: "the record of a request before the request leaves",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "journal/file/safety.ts",
    call: "syncFolder(folder);",
    keeps: "the name of the journal's file",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "journal/file/safety.ts",
    call: "syncFolder(dirname(folder), { unlessDenied: true });",
    keeps: "the journal's folder that a killed process had made",
    scenes: "the folder was made",
  },
  {
    file: "disk/write.ts",
    call: "fsyncSync(fd);",
    keeps: "every name: this is how a folder is synced",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "disk/write.ts",
    call: "syncFolder(folder);",
    keeps: "the names of secrets and of what is reserved for them",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "disk/private-file.ts",
    call: "if (synced) syncFolder(dirname(path));",
    keeps: "the name of a new folder",
    scenes: "^oauth-clients create to a file$|^profiles add",
  },
  {
    file: "disk/atomic-write.ts",
    call: 'if (durable !== "none") fsyncSync(fd);',
    keeps: "the content of a new file before its name",
    scenes: "^journal prune$|^profiles add",
  },
  {
    file: "disk/atomic-write.ts",
    call: 'if (durable === "name") syncFolder(dirname(path));',
    keeps: "the name of a new file",
    scenes: "^profiles add",
  },
  {
    file: "disk/atomic-write.ts",
    call: 'if (durable === "name") syncFolder(dirname(path));',
    nth: 2,
    keeps: "a replaced file under its name",
    scenes: "^journal prune$|^entities list --out$",
  },
  {
    file: "disk/atomic-write.ts",
    call: "syncFolder(dirname(path));",
    keeps: "changed profiles under their name",
    scenes: "^profiles edit$",
  },
  {
    file: "disk/atomic-write.ts",
    call: "fsyncSync(fd);",
    keeps: "the content of changed profiles before their name",
    unseen: "the library that writes the candidate syncs it too, and is not relied upon",
    scenes: "^profiles edit$",
  },
  {
    file: "disk/atomic-write.ts",
    call: "fsyncSync(fd);",
    nth: 2,
    keeps: "the content of an export before its name",
    scenes: "^journal export$",
  },
  {
    file: "disk/atomic-write.ts",
    call: "syncFolder(dirname(path));",
    nth: 2,
    keeps: "the name of an export",
    scenes: "^journal export$",
  },
  {
    file: "disk/atomic-write.ts",
    call: "syncFolder(dirname(path));",
    nth: 3,
    keeps: "the names of the machine's id and of its key, without which its entries would be another's",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "profiles/credentials.ts",
    call: "syncFolder(this.folder);",
    keeps: "the removal of a credential that was replaced",
    scenes: "^profiles remove$",
  },
  {
    file: "output/out-file.ts",
    call: "fsyncSync(this.#open());",
    keeps: "a finished list's rows",
    scenes: "^entities list --out$",
  },
  {
    file: "output/out-file.ts",
    call: "fdatasyncSync(this.#open());",
    keeps: "the rows before the note that they are there",
    scenes: "^entities list --out$",
  },
  {
    file: "output/out-file.ts",
    call: "syncFolder(dirname(this.path));",
    keeps: "the removal of the note beside a finished list",
    scenes: "^entities list --out$",
    unseen: "a note that comes back says that the list is whole, which it is",
  },
  {
    file: "secrets/file.ts",
    call: "syncFolder(dirname(reserve.path));",
    keeps: "the removal of what was reserved for a secret",
    scenes: "^oauth-clients create, refused$",
  },
  {
    file: "secrets/file.ts",
    call: "syncFolder(dirname(path));",
    keeps: "the name of a delivered secret that a crash had left unsynced",
    scenes: "^journal recover \\(the name was given\\)$",
  },
  {
    file: "secrets/file.ts",
    call: "fsyncSync(fd);",
    keeps: "the length of a secret's file before its name",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "secrets/file.ts",
    call: "fsyncSync(fd);",
    nth: 2,
    keeps: "the length of a whole secret that a crash had left without its name",
    scenes: "^journal recover \\(the name was not given\\)$",
  },
  {
    file: "secrets/kept.ts",
    call: "await folderSynced(this.folder);",
    keeps: "the removal of a kept secret that was claimed",
    scenes: "^journal claim$",
  },
  {
    file: "secrets/delivered-secret.ts",
    call: "fsyncSync(fd);",
    keeps: "the space that is reserved for a secret",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "secrets/delivered-secret.ts",
    call: "await folderSynced(dirname(path));",
    keeps: "the name of the space that is reserved for a secret",
    scenes: "^oauth-clients create to a file$|^keys create$",
  },
  {
    file: "secrets/delivered-secret.ts",
    call: "fsyncSync(fd);",
    nth: 2,
    keeps: "a secret before its file is cut to its length",
    scenes: "^oauth-clients create to a file$|^keys create$",
  },
  {
    file: "secrets/delivered-secret.ts",
    call: "fsyncSync(fd);",
    nth: 3,
    keeps: "the zeros over a kept secret before its name goes",
    unseen: "what it puts out of reach has no name any more: only who reads the raw device would see it",
    scenes: "^journal claim$",
  },
  {
    file: "secrets/delivered-secret.ts",
    call: "await folderSynced(dirname(path));",
    nth: 2,
    keeps: "the name of a delivered secret",
    scenes: "^oauth-clients create to a file$",
  },
  {
    file: "secrets/delivered-secret.ts",
    call: "await folderSynced(dirname(reserved));",
    keeps: "the removal of the reserved name beside a delivered secret",
    scenes: "^oauth-clients create to a file$",
  },
];
