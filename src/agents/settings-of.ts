import type { Settings } from '../core/definition.js';
import { nativeToolsOf } from '../core/native-tools.js';

/** An agent's settings; most go to the provider as they are. Throws for what can be told to be wrong here. */
export function settingsOf(name: string, settings: Settings = {}): Settings {
  nativeToolsOf(settings['nativeTools'], `agent "${name}": settings.nativeTools`);
  return settings;
}
