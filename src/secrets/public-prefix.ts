import { fieldsOf } from './composed.js';

/** How keys begin that are public: the kind and the issuer, the same for everybody. The longest comes first. */
const PREFIXES = (
  'sk-ant-api03- sk-ant-oat01- sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf- sk- pk-lf- ' +
  'sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_ github_pat_ ghp_ gho_ ghu_ ghs_ ghr_ ' +
  'glpat- xoxb- xoxp- xoxa- xoxs- xoxe. xapp- hf_ gsk_ npm_ pypi-AgEIcHlwaS5vcmc pypi- r8_ pplx- xai- tvly- ' +
  'lsv2_pt_ lin_api_ dop_v1_ shpat_ SG. ya29. AKIA ASIA AIzaSy ntn_ secret_ fly_ hvs. dckr_pat_'
)
  .split(' ')
  .toSorted((one, other) => other.length - one.length);

/** The scheme of a URL, and its host where no user info stands before that. */
const URL_BEGIN = /^[a-z][a-z\d+.-]*:\/\/(?:[^\s/?#@]*[/?#])?/i;
/** A file or a folder. */
const PLACE = /^(?:(?:~|\.{1,2})?(?:\/[\w.@ -]+)+\/?|[a-z]:\\[^\n]*)$/i;
const PEM_ARMOR = /^-----BEGIN [A-Z\d ]+-----\s*/;
const AUTH_SCHEME = /^(?:Basic|Bearer|Token|Bot) +/i;
/** The header of a JWT names an algorithm; the claims behind it begin alike as well. */
const JWT_HEADER = /^eyJ[\w-]{8,}\./;

/** Characters of a secret beyond its public prefix that may become known by a text that was cut. */
const LEAST_CHARACTERS = 12;

/**
 * Returns how many of a secret's first characters give it away: those of its public prefix and
 * 12 more. For a shorter secret, and for one that is only known whole, that is all of it.
 */
export function tellingLength(secret: string): number {
  if (isKnownWhole(secret)) return secret.length;
  return Math.min(secret.length, publicLength(secret) + LEAST_CHARACTERS);
}

/** Says whether no part of a secret gives it away: paths begin alike, and so do lists of fields. */
export function isKnownWhole(secret: string): boolean {
  return PLACE.test(secret) || fieldsOf(secret) !== null;
}

function publicLength(secret: string): number {
  for (const shape of [URL_BEGIN, PEM_ARMOR, JWT_HEADER]) {
    const [begin = ''] = shape.exec(secret) ?? [];
    if (begin !== '') return begin.length;
  }
  const [scheme = ''] = AUTH_SCHEME.exec(secret) ?? [];
  const bare = secret.slice(scheme.length);
  return scheme.length + (PREFIXES.find((prefix) => bare.startsWith(prefix))?.length ?? 0);
}
