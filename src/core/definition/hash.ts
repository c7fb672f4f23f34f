import type { AgentDefinition } from './definition.js';
import { sha256Hex } from '../digest.js';
import { canonicalJson, type Json } from '../json.js';

/** Returns the content hash of a definition: 64 hex digits over everything but the hash itself. */
export function definitionHash(content: Omit<AgentDefinition, 'hash'>): string {
  // Converts through JSON, because the history records the definition as JSON.
  const json: Json = JSON.parse(JSON.stringify({ ...content, hash: undefined }));
  return sha256Hex(canonicalJson(json));
}
