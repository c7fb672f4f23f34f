const NAMES = ['PATH', 'HOME', 'USER', 'TMPDIR', 'LANG', 'TZ', 'SystemRoot', 'USERPROFILE'];
/** The variables that pip needs to reach its index. */
const PIP_VARIABLES = /^(?:PIP_|XDG_|SSL_CERT_|REQUESTS_CA_|https?_proxy$|no_proxy$|all_proxy$)/i;

/** Returns the environment for a program that must not receive the keys of this process. */
export function minimalEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const variables = NAMES.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  // The server fails without a user name, which many containers do not have.
  return { USER: 'perdure', ...Object.fromEntries(variables) };
}

/** Returns the minimal environment with the settings of pip and of the network. */
export function downloadEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const settings = Object.entries(env).filter(([name]) => PIP_VARIABLES.test(name));
  return { ...minimalEnvironment(env), ...Object.fromEntries(settings) };
}
