import { isObject } from '../core/json.js';
import { show } from '../core/text/format-value.js';

type Options = Readonly<Record<string, unknown>>;

const COMMON = 'name transport allowTools denyTools effects timeout connectTimeout startup'.split(
  ' ',
);
const OWN: Readonly<Record<string, readonly string[]>> = {
  stdio: ['command', 'args', 'env', 'cwd'],
  http: ['url', 'authEnv', 'headersEnv'],
};
const EFFECTS: readonly unknown[] = ['read', 'keyed', 'once'];
/** A longer timer of Node fires at once. */
const LONGEST_TIMER_MS = 2_147_483_647;
const VARIABLE = /^[A-Za-z_]\w*$/;

/** Throws at the first fault of a server's definition. Types say the same, but a config may be JavaScript. */
export function assertServerOptions(value: unknown): void {
  if (!isObject(value)) throw new Error(`mcpServer takes one object, not ${show(value)}`);
  const { name } = value;
  // Two underscores separate server and tool, so a name must not blur where the one ends.
  if (typeof name !== 'string' || !/^(?!_)(?!.*__)[\w-]{1,32}(?<!_)$/.test(name)) {
    throw new Error(
      `MCP server name ${show(name)} is not possible: use 1 to 32 letters, digits, "-" and single ` +
        '"_" between them',
    );
  }
  const problem =
    wrongTransport(value) ??
    unknownOption(value) ??
    wrongPlace(value) ??
    wrongTools(value) ??
    wrongTimes(value) ??
    wrongStartup(value);
  if (problem !== undefined) throw new Error(`MCP server "${name}": ${problem}`);
}

function wrongTransport({ transport }: Options): string | undefined {
  if (typeof transport === 'string' && Object.hasOwn(OWN, transport)) return undefined;
  return `transport ${show(transport)}: give "stdio" (with \`command\`) or "http" (with \`url\`)`;
}

function unknownOption(options: Options): string | undefined {
  const transport = String(options['transport']);
  const known = [...COMMON, ...(OWN[transport] ?? [])];
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  return (
    unknown && `there is no option \`${unknown}\` for ${transport}; there are ${known.join(', ')}`
  );
}

function wrongPlace(options: Options): string | undefined {
  return options['transport'] === 'stdio' ? wrongCommand(options) : wrongUrl(options);
}

function wrongCommand({ command, args, env, cwd }: Options): string | undefined {
  if (typeof command !== 'string' || command === '') {
    return `\`command\` must name a program, not ${show(command)}; its arguments go into \`args\``;
  }
  if (args !== undefined && !isTexts(args))
    return `\`args\` must be a list of texts, not ${show(args)}`;
  if (env !== undefined && !(isTexts(env) && env.every((each) => VARIABLE.test(each)))) {
    return `\`env\` must be a list of names of environment variables, such as ["GITHUB_TOKEN"], not ${show(env)}`;
  }
  const isPath = cwd === undefined || (typeof cwd === 'string' && cwd !== '');
  return isPath ? undefined : `\`cwd\` must be a path, not ${show(cwd)}`;
}

function wrongUrl({ url, authEnv, headersEnv }: Options): string | undefined {
  if (typeof url !== 'string' || !URL.canParse(url) || !/^https?:/.test(url)) {
    return '`url` must be an http(s) address, such as "https://host/mcp"';
  }
  const { username, password, protocol, hostname } = new URL(url);
  if (username !== '' || password !== '') {
    return '`url` holds a name or password; give the token by `authEnv`, the name of an environment variable';
  }
  const wrong = wrongVariables(authEnv, headersEnv);
  if (wrong !== undefined) return wrong;
  const isSecret = authEnv !== undefined || headersEnv !== undefined;
  const isHere = ['localhost', '127.0.0.1', '[::1]'].includes(hostname);
  if (!isSecret || protocol === 'https:' || isHere) return undefined;
  return 'keys are not sent over plain http to another machine; use https';
}

function wrongVariables(authEnv: unknown, headersEnv: unknown): string | undefined {
  if (authEnv !== undefined && !isVariable(authEnv)) {
    return '`authEnv` must be the name of an environment variable that holds the token, not the token';
  }
  if (headersEnv === undefined) return undefined;
  const entries = isObject(headersEnv) ? Object.entries(headersEnv) : [];
  const fits = entries.every(([header, name]) => /^[\w-]+$/.test(header) && isVariable(name));
  if (isObject(headersEnv) && fits) return undefined;
  return '`headersEnv` must be headers with the names of environment variables, such as { "X-Api-Key": "MY_KEY" }';
}

function wrongTools({ allowTools, denyTools, effects }: Options): string | undefined {
  for (const [key, list] of Object.entries({ allowTools, denyTools })) {
    if (list !== undefined && !isTexts(list)) {
      return `\`${key}\` must be a list of tools by the server's own names, not ${show(list)}`;
    }
  }
  if (effects === undefined) return undefined;
  if (!isObject(effects))
    return `\`effects\` must be { tool: "read" | "keyed" | "once" }, not ${show(effects)}`;
  const wrong = Object.entries(effects).find(([, effect]) => !EFFECTS.includes(effect));
  return wrong && `effects.${wrong[0]} is ${show(wrong[1])}; give "read", "keyed" or "once"`;
}

function wrongTimes(options: Options): string | undefined {
  const wrong = ['timeout', 'connectTimeout'].find((key) => {
    const value = options[key];
    return value !== undefined && !(Number(value) > 0 && Number(value) <= LONGEST_TIMER_MS);
  });
  return (
    wrong && `\`${wrong}\` must be a positive number of milliseconds, not ${show(options[wrong])}`
  );
}

function wrongStartup({ startup }: Options): string | undefined {
  if (startup === undefined || startup === 'strict' || startup === 'best_effort') return undefined;
  return `startup ${show(startup)}: give "strict" or "best_effort"`;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' && each !== '');
}

function isVariable(value: unknown): boolean {
  return typeof value === 'string' && VARIABLE.test(value);
}
