import type { ModelErrorKind } from '../model.js';
import { type ErrorFacts, normalizeCode } from './error-facts.js';

/** The type of a refusal of images, and the row that finds it. */
export const NO_IMAGES = 'no_images';

/** What a provider's error means: a kind of `ModelError`, or a prompt that the filter refused. */
type ErrorMeaning = ModelErrorKind | 'filtered';

/**
 * A row of the table: it matches an error with one of its codes or one of its statuses, or whose
 * text matches. Servers agree on none of the three, so most meanings have several rows.
 */
interface Row {
  readonly name: string;
  readonly meaning: ErrorMeaning;
  readonly codes?: ReadonlySet<string>;
  /** Matches further codes, which servers vary. */
  readonly code?: RegExp;
  readonly statuses?: ReadonlySet<number>;
  readonly text?: readonly RegExp[];
  /** The row does not match such a text. */
  readonly unless?: RegExp;
  /** The text counts only with such a status; default: with any but 401. */
  readonly textWith?: (status: number | undefined) => boolean;
}

function codes(...names: readonly string[]): ReadonlySet<string> {
  return new Set(names.flatMap((name) => name.split(/\s+/)).map(normalizeCode));
}

/** An allowance that comes back by itself: waiting helps. */
const PER_TIME = /\bper[ -](?:second|minute|hour|day)\b|Per(?:Second|Minute|Hour)|\b[RT]P[MDS]\b/;

const is4xx = (status: number | undefined): boolean =>
  status === undefined || (status >= 400 && status < 500);

/**
 * The meanings of provider errors, most specific first: the first row that matches decides. An
 * error that no row matches is `retry` without a status or from 500, and `bad_request` from 400.
 */
export const ERROR_TABLE: readonly Row[] = [
  {
    name: 'filter',
    meaning: 'filtered',
    code: /^content(?:filter|policy)|contentsafety/,
    codes: codes(
      'content_filter content_policy_violation ResponsibleAIPolicyViolation bio_policy cyber_policy',
      'image_content_policy_violation content_policy moderation_blocked content_moderation',
      'data_inspection_failed SensitiveContentDetected prompt_blocked PROHIBITED_CONTENT BLOCKLIST',
      // GLM, MiniMax
      '1301 minimax1026 minimax1027',
    ),
    text: [
      /output blocked by content filtering policy/i,
      /(?:prompt|input|request|content) (?:was|were|has been) (?:flagged|blocked)\b/i,
      /flagged as potentially violating|violates? (?:our |the )?(?:usage|content|safety) (?:polic|guideline)/i,
      /content exists risk|considered high risk|content management policy|rejected as a result of our safety system/i,
      /sensitive content|inappropriate content|new_sensitive/i,
    ],
    textWith: is4xx,
  },
  {
    name: 'malformed sample',
    meaning: 'malformed',
    // The request was right: the server could not read what its model wrote.
    code: /^malformed(?:tool|function)/,
    codes: codes(
      'tool_use_failed json_validate_failed output_parse_failed tool_call_parse_failed',
      'malformed_function_call malformed_tool_call MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL',
      'invalid_model_output',
    ),
    text: [
      /failed to call a function|tool call validation failed/i,
      /fail(?:ed|ure) to (?:parse|generate|validate|extract)\b.{0,30}\b(?:tool|function)[ _-]?calls?/i,
      /error (?:parsing|extracting|in extracting|while parsing)\b.{0,20}\b(?:tool|function)[ _-]?call/i,
      /failed to (?:generate|validate) (?:valid )?json/i,
      /model(?:'s)? (?:generated|produced|returned|output)\b.{0,40}\b(?:invalid|malformed|could not be parsed|unparsable)/i,
      /failed to parse (?:the )?(?:model|generated)|failed to parse input at pos|unexpected tokens remaining in message header/i,
    ],
  },
  {
    name: 'spent',
    meaning: 'quota',
    code: /insufficient(?:quota|balance|credit|fund)|^billing/,
    codes: codes(
      'insufficient_quota billing_hard_limit_reached billing_not_active insufficient_balance',
      'insufficient_credits billing_error exceeded_current_quota_error Arrearage AccountOverdueError',
      'insufficient_user_quota pre_consume_token_quota_failed budget_exceeded spend_limit_exceeded',
      'usage_limit_reached usage_limit_exceeded payment_required credits_exhausted out_of_credits',
      'no_credits quota_exceeded quotaExceeded dailyLimitExceeded BILLING_DISABLED',
      'AllocationQuota.FreeTierOnly InsufficientBalance InsufficientQuota credit_limit_reached',
      // GLM, MiniMax
      '1113 minimax1008',
    ),
    statuses: new Set([402]),
  },
  {
    name: 'spent, by its text',
    meaning: 'quota',
    text: [
      /insufficient (?:account )?(?:balance|credits?|quota)|not enough (?:credits?|balance|quota)/i,
      /credit balance is too low|balance is (?:too low|not enough|insufficient|negative)/i,
      /(?:out of|no (?:more|remaining)|used (?:up )?all(?: (?:your|available|of))?|exhausted|ran out of).{0,30}\bcredits?\b/i,
      /credits? (?:balance )?(?:is|are|has been|have been|was) (?:depleted|exhausted|used up|spent|consumed)/i,
      /(?:requires|add|purchase|buy) (?:more )?credits?\b|exceeded your (?:monthly |included |monthly included |free )*credits?/i,
      /billing hard limit|billing (?:limit|to be enabled|is not (?:active|enabled))|check your billing|enable billing/i,
      /(?:reached|exceeded|exceeds|hit|over)\b.{0,40}\b(?:usage|spend(?:ing)?|budget|billing|credit) (?:limit|cap)s?/i,
      /\b(?:key|credit|spend(?:ing)?|monthly usage) limit (?:was |has been |is )?(?:exceeded|reached)/i,
      /budget (?:has been |was |is )?(?:exceeded|exhausted)|exceeded.{0,20}\bbudget/i,
      /free[ _](?:tier|quota|trial|usage).{0,60}(?:exhausted|used up|ended|expired|limit: 0)/i,
      /quota (?:has been |is )?(?:used up|exhausted)|please (?:recharge|top[ -]?up)|\boverdue\b|in good standing/i,
      /余额不足|额度不足|欠费|请充值/,
    ],
    unless: PER_TIME,
  },
  {
    // Google's text for a limit per minute is the same, but it says when to come back.
    name: 'spent, without a time to come back',
    meaning: 'quota',
    text: [/exceeded your (?:current |monthly |daily )?quota/i],
    unless: /(?:retry|again) (?:in|after) |PerMinute|per minute/i,
  },
  {
    name: 'prompt too long',
    meaning: 'context_too_long',
    code: /context(?:length|window)/,
    codes: codes(
      'context_length_exceeded exceed_context_size_error model_max_prompt_tokens_exceeded',
      'max_prompt_tokens_exceeded prompt_too_long context_window_exceeded ContextWindowExceededError',
      'string_above_max_length tokens_limit_reached context_too_long input_too_long',
      // GLM
      '1261',
    ),
  },
  {
    name: 'prompt too long, by its text',
    meaning: 'context_too_long',
    // Only OpenAI and a few others send a code.
    text: [
      /maximum (?:context|prompt|model|input) (?:length|tokens)/i,
      /context[_ ](?:length|window|size)[_ ]exceeded/i,
      /(?:exceed|overflow|larger than|greater than|longer than).{0,60}context[_ ](?:window|length|size)/i,
      /context[_ ](?:window|length|size).{0,60}(?:exceed|overflow|too (?:long|small))/i,
      /(?:prompt|input|conversation|messages?) (?:is|are) too (?:long|large)/i,
      /(?:prompt|input).{0,60}exceeds the (?:maximum|limit|max)|(?:prompt|input) exceeds max length/i,
      /token count (?:\(\d{1,9}\) |of \d{1,9} )?exceeds/i,
      /prompt is longer than|too long to fit into the model/i,
      /reduce the (?:length|size) of (?:the|your) (?:messages|prompt|input)/i,
      /too many (?:input |prompt )?tokens(?! per)/i,
      /exceeds? context limit|exceed\w{0,9} (?:the )?(?:model )?token limit|(?<!rate and )token limit exceeded/i,
      /range of input length should be|input length.{0,40}(?:exceed|too long)/i,
      // Text Generation Inference: by tokens of the prompt alone, or with those of the reply.
      /max_new_tokens\W{1,3}must be <=|inputs\W{1,3}must have less than/i,
      /max(?:imum)? size: \d{1,9} tokens/i,
      /超[过出长].{0,20}(?:上下文|最大长度|长度限制|token)|Prompt 超长/,
    ],
    unless: PER_TIME,
    textWith: (status) => status !== 401 && status !== 404 && status !== 429,
  },
  {
    // A single request that is larger than the allowance of a minute: waiting does not help.
    name: 'larger than the allowance',
    meaning: 'context_too_long',
    text: [/request (?:entity |body )?too large/i],
    textWith: (status) => status === 413 || status === 429,
  },
  {
    name: NO_IMAGES,
    meaning: 'request',
    // Sent by servers whose model cannot see; some send it with a status that would be retried.
    text: [
      /images? (?:input|url)s? (?:is |are )?(?:not supported|unsupported)|image_url\W.{0,40}(?:not supported|only supported)/i,
      /unsupported content part type\W{1,4}image_url|(?:does not|doesn't|that) support (?:image|vision)|not a multimodal model/i,
    ],
  },
  {
    name: 'attachment',
    meaning: 'request',
    // A part of the conversation is at fault, so the turn ends, and the next one goes on without it.
    code: /^(?:image|unsupportedimage|invalidimage)/,
    codes: codes(
      'invalid_prompt invalid_image invalid_image_url invalid_image_format unsupported_image',
      'image_too_large image_too_small image_parse_error image_file_too_large image_file_not_found',
      'unsupported_image_media_type invalid_image_mode invalid_base64_image invalid_base64',
      'empty_image_file failed_to_download_image invalid_file unsupported_file file_too_large',
      'invalid_audio invalid_media unsupported_media_type file_not_found document_too_large',
    ),
  },
  {
    name: 'attachment, by its text',
    meaning: 'request',
    text: [
      /could not (?:process|read|decode|open|parse) (?:the |this |your |input )?(?:image|picture|pdf|document|file|audio|media)/i,
      /(?:invalid|corrupt(?:ed)?|unsupported|damaged|unable to \w{1,12}|cannot (?:identify|decode|open|read)|failed to (?:decode|download|fetch|load|process|read)) .{0,40}\b(?:images?|picture|pdf|document|audio|attachment|base64|image_url)\b/i,
      /\b(?:images?|picture|pdf|document|audio|attachment|base64)\b.{0,60}\b(?:invalid|corrupt|unsupported|not supported|damaged|too (?:large|many|small|big)|exceeds|could not be|cannot be|not (?:a )?valid|malformed|password)/i,
      /image was specified using|image dimensions|file (?:type|format) (?:is )?(?:not supported|unsupported)/i,
    ],
    textWith: (status) => is4xx(status) && ![401, 403, 404, 429].includes(status ?? 0),
  },
  {
    name: 'busy',
    meaning: 'retry',
    code: /ratelimit|toomanyrequests|overload|throttl/,
    codes: codes(
      'rate_limit_exceeded rate_limit_error rate_limited rate_limit_reached too_many_requests',
      'rateLimitExceeded userRateLimitExceeded RESOURCE_EXHAUSTED requests_limit tokens_limit',
      'ThrottlingException Throttling throttled ThrottledException TooManyRequestsException',
      'Throttling.RateQuota Throttling.AllocationQuota Throttling.BurstRate limit_requests',
      'overloaded_error overloaded server_overloaded server_is_overloaded engine_overloaded',
      'engine_overloaded_error model_overloaded capacity_exceeded slow_down server_busy',
      'service_unavailable service_unavailable_error unavailable_error UNAVAILABLE',
      'ServiceUnavailableException ModelNotReadyException model_loading ModelTimeoutException',
      'DEADLINE_EXCEEDED ABORTED server_error internal_server_error internal_error api_error',
      'InternalServerException timeout_error request_timeout upstream_error bad_gateway',
      // GLM, MiniMax
      '1302 1303 1305 minimax1000 minimax1001 minimax1002 minimax1013 minimax1024 minimax1033',
      'minimax1039 minimax2045',
    ),
  },
  {
    name: 'too large for HTTP',
    meaning: 'context_too_long',
    statuses: new Set([413]),
    unless: /rate limit|too many requests|again (?:in|later)/i,
  },
  {
    name: 'unknown model',
    meaning: 'model',
    code: /^modelnot/,
    codes: codes(
      'model_not_found model_not_available invalid_model unknown_model unsupported_model',
      'model_not_supported ModelNotFound DeploymentNotFound model_not_exist not_found_error',
      'NOT_FOUND InvalidEndpointOrModel.NotFound model_decommissioned model_deprecated ModelNotOpen',
      'model_terms_required model_not_active model_permission_blocked_org',
      'model_permission_blocked_project model_access_denied invalid_model_error',
      // GLM
      '1211',
    ),
    statuses: new Set([404, 405, 410]),
    unless: /rate limit|too many requests|again (?:in|later)/i,
  },
  {
    name: 'refused key',
    meaning: 'credentials',
    code: /apikey(?:invalid|expired)|^authentication/,
    codes: codes(
      'invalid_api_key authentication_error invalid_authentication_error invalid_authentication',
      'permission_error permission_denied UNAUTHENTICATED unauthorized API_KEY_INVALID InvalidApiKey',
      'API_KEY_SERVICE_BLOCKED API_KEY_EXPIRED account_deactivated invalid_organization',
      'organization_restricted ExpiredTokenException UnrecognizedClientException token_expired',
      'AccessDeniedException InvalidSignatureException unsupported_country_region_territory',
      'missing_api_key expired_api_key auth_error minimax1004 minimax2049',
    ),
    statuses: new Set([401, 407]),
  },
  {
    name: 'busy, by its text',
    meaning: 'retry',
    text: [
      /rate[ -]?limit|too many (?:concurrent )?requests|concurren(?:t|cy) (?:request )?limit|throttl/i,
      /overloaded|(?:over|at|insufficient|exceeded) capacity|high (?:demand|traffic|load)|heavy load|server is busy/i,
      /(?:try|retry) (?:the request |your request )?again (?:later|in |after )|please (?:try again|retry)(?: (?:later|shortly|in|after)|[.!]|$)/i,
      /temporarily (?:unavailable|overloaded|disabled|rate)|currently (?:loading|unavailable|overloaded|busy)|(?:is|still) (?:being )?loading|warming up/i,
      /service unavailable|internal (?:server )?error|bad gateway|gateway time-?out|upstream (?:connect|request|service|server|error|timed)|timed? ?out\b/i,
    ],
    textWith: (status) => is4xx(status) && status !== 401,
  },
  {
    name: 'refused key, by its text',
    meaning: 'credentials',
    text: [
      /api[ _-]key\b.{0,20}\b(?:not valid|invalid|missing|required|expired|revoked|disabled|not found|incorrect)/i,
      /(?:invalid|incorrect|no|missing|expired|wrong|unknown) (?:api[ _-]?key|auth\w{0,12} credentials|(?:access|auth\w{0,12}|bearer) token|credentials)/i,
      /authentication (?:fail|required|error)|not authenticated|did(?:n't| not) provide an api key/i,
      /(?:location|country|region|territory)\b.{0,30}\bnot supported/i,
      /(?:organi[sz]ation|account) (?:has been |is |was )?(?:restricted|disabled|deactivated|banned|suspended)/i,
    ],
    textWith: is4xx,
  },
  {
    name: 'unknown model, by its text',
    meaning: 'model',
    text: [
      /invalid model|unknown model|unsupported model|no such model|model identifier is invalid/i,
      /model\b.{0,80}(?:not found|does not exist|not exist|is not supported|not (?:a )?valid model|is not available|not deployed|not loaded|isn['’]t (?:supported|available))/i,
      /\bis not a valid model|(?:does not|doesn't|do not|don't) have access to (?:the |this )?model/i,
      /model\b.{0,60}\b(?:decommissioned|deprecated|retired|no longer (?:supported|available)|has been (?:removed|shut down))/i,
      /no (?:models? (?:is |are )?loaded|endpoints found|allowed providers)|failed to load model|on-demand throughput/i,
      /does(?: not|n't) support (?:tools?|tool use|tool calling|function calling|functions)\b/i,
    ],
    textWith: is4xx,
  },
  { name: 'forbidden', meaning: 'credentials', statuses: new Set([403]) },
  {
    name: 'passing status',
    meaning: 'retry',
    // 420, 498: rate and capacity. 424: the model's own server failed. 499: a proxy gave up.
    statuses: new Set([408, 409, 420, 423, 424, 425, 429, 498, 499]),
  },
];

/** Returns the first row that matches an error; null if none does. */
export function findRow(facts: ErrorFacts): Row | null {
  return ERROR_TABLE.find((row) => matches(row, facts)) ?? null;
}

function matches(row: Row, facts: ErrorFacts): boolean {
  const { status, text } = facts;
  if (row.unless?.test(text) === true) return false;
  const isOwn = (code: string): boolean =>
    row.codes?.has(code) === true || row.code?.test(code) === true;
  if (facts.codes.some(isOwn)) return true;
  if (status !== undefined && row.statuses?.has(status) === true) return true;
  const { textWith = (given) => given !== 401 } = row;
  return textWith(status) && (row.text ?? []).some((phrase) => phrase.test(text));
}
