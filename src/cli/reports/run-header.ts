import type { Projection } from '../../history/projection.js';
import { visible } from '../../core/text/summaries.js';
import type { ServerHandle } from '../../server/server-handle.js';
import type { Palette } from '../format/output.js';
import type { Screen } from '../run-view/screen.js';

/** The first line about a run: its id, the model that answers, where to look at it. */
export interface RunHeader {
  /**
   * Shown once, as soon as the model is known or the run is over. `view` is null when that takes
   * long: then the model follows when it is known.
   */
  show(view: Projection | null, screen: Screen): void;
}

export function runHeader(server: ServerHandle, id: string, paint: Palette): RunHeader {
  let shown = false;
  let named = false;
  return {
    show(view, screen) {
      const model = modelOf(view);
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

/** The page of a run in the Temporal UI; null where none is known to be served. */
export function uiLink({ uiUrl, namespace }: ServerHandle, id: string): string | null {
  if (uiUrl === null) return null;
  return `${uiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(id)}`;
}

/** The demo model must never be taken for an LLM. */
function modelOf(view: Projection | null): string | null {
  const model = view?.state?.config.definition.model;
  if (model === undefined) return null;
  return model === 'demo' ? 'demo model (code, no LLM)' : `model ${visible(model)}`;
}
