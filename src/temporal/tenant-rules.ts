import type { Client } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import { InputError } from '../core/errors.js';

/** A run that is to start, or a schedule that starts some. */
interface TenantPlace {
  readonly id: string;
  readonly tenant?: string | undefined;
}

/** What the keys of tenants ask of the ids of runs. */
export interface TenantRules {
  /** Returns what ids of the tenant's runs begin with; empty if the tenant has no key of its own. */
  idPrefix(tenant: string | undefined): string;
  /** Returns the tenant to whose key an id leads; undefined if it leads to none. */
  tenantOf(id: string): string | undefined;
  /** Returns why a run would be encrypted with a key of another tenant or of none; null if it would not. */
  problem(place: TenantPlace): string | null;
}

/** A codec that encrypts what belongs to a tenant with the key of the tenant. */
export interface TenantCodec extends PayloadCodec {
  readonly tenants: TenantRules;
}

/** Returns what new ids of this tenant's runs begin with: empty without a key of its own, else `TENANT/`. */
export function tenantIdPrefix(client: Client, tenant: string | undefined): string {
  return rulesOf(client)?.idPrefix(tenant) ?? '';
}

/** Returns the tenant to whose key an id leads; undefined if it leads to none. */
export function tenantOfId(client: Client, id: string): string | undefined {
  return rulesOf(client)?.tenantOf(id);
}

/**
 * Throws an `InputError` if the id does not lead to the key of the tenant: what the run says would silently
 * be encrypted with another one.
 */
export function assertTenantId(client: Client, place: TenantPlace): void {
  const problem = rulesOf(client)?.problem(place) ?? null;
  if (problem !== null) throw new InputError(problem);
}

function rulesOf({ options }: Client): TenantRules | null {
  const codecs: readonly PayloadCodec[] = options.loadedDataConverter.payloadCodecs;
  return codecs.find((codec): codec is TenantCodec => 'tenants' in codec)?.tenants ?? null;
}
