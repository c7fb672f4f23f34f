import type { Settings } from '../core/definition/definition.js';
import { computerHandler, nativeToolsOf } from '../core/definition/native-tools.js';

/** An agent's settings; most go to the provider as they are. Throws for what can be told to be wrong here. */
export function settingsOf(
  name: string,
  settings: Settings = {},
  { tools, decide }: { readonly tools: readonly string[]; readonly decide: unknown },
): Settings {
  const path = `agent "${name}": settings.nativeTools`;
  const nativeTools = nativeToolsOf(settings['nativeTools'], path);
  const handler = computerHandler(settings);
  if (handler === null) return settings;
  if (!tools.includes(handler)) {
    const known = tools.length === 0 ? 'it has no tools' : `there are ${tools.join(', ')}`;
    throw new Error(`${path}: handler "${handler}" is no tool of this agent; ${known}`);
  }
  if (decide !== undefined && decide !== 'tools') {
    throw new Error(`${path}: actions on a screen are native calls; leave \`decide\` out`);
  }
  return { ...settings, nativeTools };
}
