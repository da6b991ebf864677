// The environment of child processes: the listed variables, and those that `INTEG_COMMAND_ENV` names.
import { Failure, invalidValue } from "../errors.ts";
import { type Environment, variable } from "./resolution.ts";

/**
 * Variables that every command gets, by purpose. None is a credential, but a proxy's address may contain a password.
 */
export const passedVariables: Readonly<Record<string, readonly string[]>> = {
  "The person and the machine": names(
    "PATH HOME USER LOGNAME SHELL TMPDIR TMP TEMP TZ TERM LANG LANGUAGE LC_ALL LC_CTYPE LC_MESSAGES " +
      "XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR",
  ),
  Windows: names(
    "SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT USERNAME USERPROFILE HOMEDRIVE HOMEPATH APPDATA " +
      "LOCALAPPDATA PROGRAMDATA PROGRAMFILES",
  ),
  "Keychains and agents": names(
    "DBUS_SESSION_BUS_ADDRESS DISPLAY WAYLAND_DISPLAY XAUTHORITY SSH_AUTH_SOCK GNUPGHOME GPG_TTY",
  ),
  "The network": names("HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS"),
  "Which store, account or file a tool uses": names(
    "VAULT_ADDR VAULT_NAMESPACE VAULT_CACERT GH_HOST GH_REPO GH_CONFIG_DIR GITLAB_HOST KUBECONFIG " +
      "KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION " +
      "AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE CLOUDSDK_CONFIG CLOUDSDK_CORE_PROJECT AZURE_CONFIG_DIR " +
      "DOCKER_HOST DOCKER_CONFIG PASSWORD_STORE_DIR SOPS_AGE_KEY_FILE",
  ),
  "integ itself, for a command that calls it": names("INTEG_CONFIG_DIR INTEG_STATE_DIR"),
};

function names(text: string): readonly string[] {
  return text.split(" ");
}

const passed: ReadonlySet<string> = new Set(Object.values(passedVariables).flat());

export function childEnvironment(env: Environment, facts: Environment = {}): Record<string, string | undefined> {
  const further = furtherVariables(env);
  // Windows ignores the case of names, and other systems use lower-case proxy variables too.
  const isPassed = (name: string): boolean => passed.has(name.toUpperCase()) || further.has(name);
  return { ...Object.fromEntries(Object.entries(env).filter(([name]) => isPassed(name))), ...facts };
}

function furtherVariables(env: Environment): ReadonlySet<string> {
  const further = (variable(env, "INTEG_COMMAND_ENV") ?? "").split(",").map((name) => name.trim());
  for (const name of further) {
    if (name !== "" && !/^[A-Za-z_]\w*$/.test(name))
      throw invalidValue("INTEG_COMMAND_ENV", name, {
        why: "it is not the name of a variable",
        hint: "Write names separated by commas, like VAULT_TOKEN,GH_TOKEN.",
      });
    if (/^INTEG_/i.test(name))
      throw new Failure("usage", `Invalid INTEG_COMMAND_ENV: no command gets integ's own variable ${name}.`, {
        hint: `Leave ${name} out.`,
      });
  }
  return new Set(further);
}
