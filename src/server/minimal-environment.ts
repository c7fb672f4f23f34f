const NAMES = ['PATH', 'HOME', 'USER', 'TMPDIR', 'LANG', 'TZ', 'SystemRoot', 'USERPROFILE'];
/** What pip needs to reach its index. */
const INDEX = /^(?:PIP_|XDG_|SSL_CERT_|REQUESTS_CA_|https?_proxy$|no_proxy$|all_proxy$)/i;

/** The environment for a program that has no business with the keys of this process. */
export function minimalEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = NAMES.flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  // Under a user id without a name, as in many containers, the server asks for one and gives up.
  return { USER: 'perdure', ...Object.fromEntries(kept) };
}

/** The same for a program that fetches something, with its own settings and those of the network. */
export function fetchingEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const settings = Object.entries(env).filter(([name]) => INDEX.test(name));
  return { ...minimalEnvironment(env), ...Object.fromEntries(settings) };
}
