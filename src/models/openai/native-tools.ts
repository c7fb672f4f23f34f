import { computerHandler, nativeToolsOf } from '../../core/definition/native-tools.js';
import type { Capabilities } from '../capabilities.js';
import type { ModelRequest } from '../model.js';
import { ModelError } from '../model-error.js';
import type { Item } from './responses/items.js';

/** Looks up a variable of the worker's environment. */
export type Variable = (name: string) => string | undefined;

function native({ settings }: Pick<ModelRequest, 'settings'>) {
  try {
    return nativeToolsOf(settings['nativeTools'], 'settings.nativeTools');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ModelError(message, { kind: 'request', type: 'bad_setting' });
  }
}

/** The tokens that these tools carry, which no message may hold. */
export function nativeSecrets(request: ModelRequest, variable: Variable): readonly string[] {
  return native(request).flatMap(({ authorizationEnv: name }) => {
    const token = typeof name === 'string' ? variable(name) : undefined;
    return token === undefined || token === '' ? [] : [token];
  });
}

/** Throws a `ModelError` where the request wants tools of the provider that nobody there executes. */
export function refuseNative(request: ModelRequest, why: string): void {
  const [tool] = native(request);
  if (tool === undefined) return;
  const message = `settings.nativeTools: ${JSON.stringify(tool['type'])} cannot be had: ${why}`;
  throw new ModelError(message, { kind: 'request', type: 'no_native_tools' });
}

/** Throws a `ModelError` where a screen shall be used by a model that cannot. */
export function refuseComputer({ settings, model }: ModelRequest, takes: Capabilities): void {
  if (takes.computerUse || computerHandler(settings) === null) return;
  const message =
    `settings.nativeTools: the model "${model}" uses no computer; name one that does. If it does, set ` +
    'capabilities: { computerUse: true } at its entry in `models` of the config';
  throw new ModelError(message, { kind: 'request', type: 'no_computer_use' });
}

/** Tools that the provider executes, with the tokens that they need put in. */
export function wireNativeTools(request: ModelRequest, variable: Variable): readonly Item[] {
  return native(request).map((tool): Item => {
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
