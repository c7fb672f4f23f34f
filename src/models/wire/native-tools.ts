import { computerHandler, nativeToolsOf } from '../../core/definition/native-tools.js';
import type { JsonObject } from '../../core/json.js';
import type { ModelCapabilities } from '../capabilities.js';
import type { ModelRequest } from '../model.js';
import { ModelError } from '../model-error.js';

/** Looks up a variable of the worker's environment. */
export type Variable = (name: string) => string | undefined;

/** Returns the tools that the provider executes, with the tokens of their variables filled in. */
export function createNativeTools(
  request: ModelRequest,
  variable: Variable,
): readonly JsonObject[] {
  return listNativeTools(request).map((tool): JsonObject => {
    const { authorizationEnv: name, handler: _, ...rest } = tool;
    const approval = tool['type'] === 'mcp' ? { require_approval: 'never' } : {};
    if (typeof name !== 'string') return { ...rest, ...approval };
    const authorization = variable(name)?.trim() ?? '';
    if (authorization !== '') return { ...rest, ...approval, authorization };
    throw new ModelError(
      `settings.nativeTools: ${name} is not set; set it for the worker to the token of ${JSON.stringify(tool['server_label'] ?? tool['type'])}`,
      { kind: 'credentials', type: 'no_credentials' },
    );
  });
}

/** Returns the tokens of these tools, so they can be redacted from every message. */
export function getNativeSecrets(request: ModelRequest, variable: Variable): readonly string[] {
  return listNativeTools(request).flatMap(({ authorizationEnv: name }) => {
    const token = typeof name === 'string' ? variable(name) : undefined;
    return token === undefined || token === '' ? [] : [token];
  });
}

/** Throws a `ModelError` if the request has tools for the provider to execute. */
export function refuseNativeTools(request: ModelRequest, reason: string): void {
  const [tool] = listNativeTools(request);
  if (tool === undefined) return;
  const message = `settings.nativeTools: ${JSON.stringify(tool['type'])} is not available: ${reason}`;
  throw new ModelError(message, { kind: 'request', type: 'no_native_tools' });
}

/** Throws a `ModelError` if the request has a screen, but the model cannot use one. */
export function refuseComputer(
  { settings, model }: ModelRequest,
  accepts: ModelCapabilities,
): void {
  if (accepts.computerUse || computerHandler(settings) === null) return;
  const message =
    `settings.nativeTools: the model "${model}" cannot use a computer; use one that can. If it can, set ` +
    'capabilities: { computerUse: true } at its entry in `models` of the config';
  throw new ModelError(message, { kind: 'request', type: 'no_computer_use' });
}

function listNativeTools({ settings }: ModelRequest) {
  try {
    return nativeToolsOf(settings['nativeTools'], 'settings.nativeTools');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ModelError(message, { kind: 'request', type: 'bad_setting' });
  }
}
