import type { Projection } from '../../history/projection.js';
import { visible } from '../../core/text/summaries.js';
import type { ServerHandle } from '../../server/server-handle.js';
import type { Palette } from '../format/output.js';
import type { Screen } from '../run-view/screen.js';

/** The first line about a run: its id, its model, and its page in the Temporal UI. */
export interface RunHeader {
  /**
   * Shows the line once, when the model is known or the run has ended. A null `view` shows it at
   * once; the model then follows in a line of its own.
   */
  show(view: Projection | null, screen: Screen): void;
}

/** Creates the header of a run, which remembers what it has shown. */
export function runHeader(server: ServerHandle, id: string, paint: Palette): RunHeader {
  let shown = false;
  let named = false;
  return {
    show(view, screen) {
      const model = modelText(view);
      if (view !== null && model === null && view.ended === null) return;
      if (shown && !named && model !== null) screen.line(model);
      if (!shown) {
        const link = uiLink(server, id);
        const parts = [paint.bold(`run ${visible(id)}`), model, link && paint.dim(link)];
        screen.line(parts.filter((part) => part !== null).join(' · '));
      }
      shown = true;
      named ||= model !== null;
    },
  };
}

/** Returns the page of a run in the Temporal UI; null if no UI is known. */
export function uiLink({ uiUrl, namespace }: ServerHandle, id: string): string | null {
  if (uiUrl === null) return null;
  return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
}

/** Returns the model as text. The demo model must never be mistaken for an LLM. */
function modelText(view: Projection | null): string | null {
  const model = view?.state?.config.definition.model;
  if (model === undefined) return null;
  return model === 'demo' ? 'demo model (code, not an LLM)' : `model ${visible(model)}`;
}
