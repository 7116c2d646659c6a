"""The limits that the pipeline promises or enforces, each with its unit and its reason."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

# --- Input -----------------------------------------------------------------------------------------------------------

BATCH_ITEMS: Final = 100
"""Raw items in one push."""
TITLE_CHARACTERS: Final = 500
"""Characters of a title; longer ones are bodies."""
CREDIT_CHARACTERS: Final = 200
"""Characters of the author and of the licence of a medium, each."""
SEARCH_CHARACTERS: Final = 200
"""Characters of what is searched for."""
SEARCH_RESULTS: Final = 1_000
"""Results of a search: nobody reads further."""
SEARCH_CANDIDATES: Final = 5_000
"""Items with the words, the newest, of which a search ranks the best."""
SEARCH_SECONDS: Final = 3_600
"""Seconds that the cursor of a search lasts."""
HINT_CHARACTERS: Final = 500
"""Characters of the hint for a further variant."""
STORYBOARD_BYTES: Final = 512 * 1024
"""Bytes of the JSON of an edited storyboard."""
EXTERNAL_ID_CHARACTERS: Final = 512
"""Characters of the sender's own id: room for an address."""
METADATA_BYTES: Final = 16 * 1024
"""Bytes of a raw item's `metadata` as JSON: labels, not documents."""
MEDIA_PER_ITEM: Final = 20
"""Media files that one raw item may name."""
UPLOAD_IMAGE_BYTES: Final = 20 * 1024 * 1024
"""Bytes of an uploaded picture."""
UPLOAD_PIXELS: Final = 40_000_000
"""Pixels of an uploaded picture: unpacked, each takes three or four bytes of memory."""
UPLOAD_TEXT_BYTES: Final = 5 * 1024 * 1024
"""Bytes of an uploaded text file: as many as a raw item's body may have."""
UPLOAD_AUDIO_BYTES: Final = 100 * 1024 * 1024
"""Bytes of an uploaded sound file."""
UPLOAD_VIDEO_BYTES: Final = 200 * 1024 * 1024
"""Bytes of an uploaded video."""
UPLOAD_BODY_BYTES: Final = UPLOAD_VIDEO_BYTES + 64 * 1024
"""Bytes of a `POST /uploads` body: the largest file and the form around it."""
MEDIA_VIDEO_BYTES: Final = 2 * 1024 * 1024 * 1024
"""Bytes of a video that is analyzed: two hours of good 1080p."""
MEDIA_SECONDS: Final = 2 * 60 * 60
"""Seconds of a video or sound that something is made from; longer ones have to be cut by their owner."""
MEDIA_FRAME_PIXELS: Final = 3840 * 2160
"""Pixels of a video's frame: 2160p. A short has a quarter of them."""
MEDIA_FRAME_SIDE: Final = 4096
"""Pixels of a frame's longer side: strips are no videos, and cost a decoder as much."""
MEDIA_FRAMES_PER_SECOND: Final = 60
"""Frames per second of a video; more aren't visible and cost as much again."""
MEDIA_STREAMS: Final = 16
"""Streams in one file: picture, languages, subtitles. Hundreds are an attack."""
MEDIA_PROBE_SECONDS: Final = 30
"""Seconds that the analysis of a file may take: 2 GiB are read through in about five."""
MEDIA_PROBES_AT_ONCE: Final = 2
"""Files that are analyzed at once on one machine: each may take a core and the memory below."""
MEDIA_PROBE_MEMORY: Final = 1024 * 1024 * 1024
"""Bytes of address space for the analysis of a file; a frame of 2160p takes 12 MB, its decoder 200."""
UPLOADS_UNUSED_BYTES: Final = 1024 * 1024 * 1024
"""Bytes of unused uploads that one workspace may have."""
OUTLETS_PER_ITEM: Final = 20
"""Outlets that one item may go to."""
ENGINES_PER_ITEM: Final = 20
"""Engine outputs that one raw item may be made into."""
VARIANTS: Final = 3
"""Variants of one engine run; more of the same source only repeat each other."""
BODY_CHARACTERS: Final = 200_000
"""Characters of a body: of a raw item with what is said in its video, and of a generated item."""
PUBLISH_AHEAD: Final = timedelta(days=366)
"""How far ahead a publication may be scheduled."""

# --- Rates -----------------------------------------------------------------------------------------------------------

INBOUND_CALLS: Final = "120/m"
"""Calls of one source's inbound address, and guesses at such addresses from one sender."""
INBOUND_REFUSALS_NOTED: Final = 10
"""Calls per minute that fail one source's verification and are recorded; further ones are refused unrecorded."""
INBOUND_WINDOW: Final = timedelta(minutes=5)
"""How far a signature's time may differ from ours: as for Standard Webhooks, Slack and Stripe."""
MAPPING_CHARACTERS: Final = 500
"""Characters of one expression of a webhook source's mapping."""
MAPPING_STEPS: Final = 100_000
"""Steps that the whole mapping may take for one delivery."""
MAPPING_WEIGHT: Final = 8 * 1024 * 1024
"""Characters that a mapping may build, compare and pass to functions for one delivery."""

# --- Keeping ---------------------------------------------------------------------------------------------------------

OAUTH_ATTEMPT_KEPT: Final = timedelta(minutes=10)
"""How long a person who was sent to a platform has to come back with its permission."""
UPLOADS_KEPT: Final = timedelta(days=7)
"""How long an upload is kept that no raw item and no persona uses."""
INBOUND_BODIES_KEPT: Final = 20
"""Deliveries of one webhook source whose bodies are kept."""
INBOUND_DELIVERIES_KEPT: Final = timedelta(hours=72)
"""How long a delivery without its body is kept, and its id known again: senders retry for up to three days."""
INBOUND_EXCERPT: Final = 2000
"""Characters of a delivery's body that lists and pages show."""
RENDER_FOLDERS_KEPT: Final = timedelta(hours=2)
"""How long the working folder of a video whose process was killed is kept."""

# --- Work ------------------------------------------------------------------------------------------------------------

EVENT_BYTES: Final = 20_000
"""Bytes of an event's body; over that, long text gives way to the id."""
FEED_ENTRIES: Final = 200
"""Entries taken from one poll of a feed."""
FEED_BYTES: Final = 5 * 1024 * 1024
"""Bytes of a feed, unpacked."""
PAGE_BYTES: Final = 5 * 1024 * 1024
"""Bytes of a web page, unpacked: the longest articles with all their markup are about 2 MB."""
SITEMAP_BYTES: Final = 50 * 1024 * 1024
"""Bytes of a sitemap, unpacked (sitemaps.org/protocol.html, read 2026-11-20)."""
FEED_PUBLISHED: Final = 50
"""Items in a workspace feed."""
SANDBOX_FEED_PUBLISHED: Final = 20
"""Items in the feed of a workspace that isn't approved yet."""
MAX_BURST_DEFAULT: Final = 20
"""New entries of one poll that become items at once; the rest are skipped, which the log shows."""
LINKS_AT_ONCE: Final = 10
"""Links that may be pasted at once at Create."""
SOURCES_AT_ONCE: Final = 500
"""Addresses that a page adds as sources at once."""
SAVED_VIEWS: Final = 30
"""Saved views of a workspace's list of items."""
OPML_BYTES: Final = 1024 * 1024
"""Bytes of a feed reader's list."""
OPML_FORM_BYTES: Final = 8 * 1024 * 1024 + 512 * 1024
"""Bytes of a form with such a list: up to there one that is too large is said on the page."""
FIRST_POLL_NEWEST: Final = 5
"""Entries taken at a source's first poll unless it says otherwise: a start, not a flood."""
POLL_INTERVAL_MINUTES: Final = 60
"""Minutes between two polls if none are set and the source shows no rhythm."""
POLL_INTERVAL_LEAST: Final = timedelta(minutes=10)
"""The shortest wait between two polls that a source's own rhythm leads to."""
POLL_INTERVAL_MOST: Final = timedelta(hours=24)
"""The longest wait between two polls that a source's own rhythm leads to."""
POLL_RHYTHM_ENTRIES: Final = 20
"""The newest entries whose gaps tell a source's rhythm: half of the median gap is waited."""
POLL_UNCHANGED_FACTOR: Final = 1.5
"""By how much the wait grows with each poll that brings nothing new."""
PREVIEW_SECONDS: Final = 20
"""Seconds that the preview of a source may take in all."""
MOVE_POLLS: Final = 3
"""Polls in a row that a permanent redirect must have been seen at before its target is stored."""
MOVE_AFTER: Final = timedelta(days=1)
"""For how long a permanent redirect must have been seen before its target is stored."""
HOST_GAP: Final = timedelta(milliseconds=500)
"""The rest between two fetches from one host, whoever's sources they are for; there is one at a time."""
HOST_BUSY_WAIT: Final = timedelta(seconds=2)
"""The longest a source waits before it looks again whether its host is free."""
HOST_SLOTS_KEPT: Final = timedelta(days=1)
"""How long a host that nobody fetches from is remembered."""
SAME_WITHIN: Final = timedelta(hours=48)
"""How far apart two entries with the same address and title may be published to be the same under another id."""
NEAR_WITHIN: Final = timedelta(days=90)
"""How far back a new raw item is compared with others for the mark `near_duplicate`."""
SOURCE_ENTRIES_KEPT: Final = timedelta(days=90)
"""How long the log keeps an entry that no raw item was made of, since the last decision on it."""
POLL_BACKOFF_MOST: Final = timedelta(hours=24)
"""The longest wait between two polls of a failing source."""
POLL_RETRY_OF_NEW: Final = timedelta(minutes=10)
"""The wait that is doubled for each failure of a source that has never been read, if its interval is longer."""
POLL_FAILURES_UNTIL_FAILING: Final = 3
"""Failed polls in a row until the source says so."""
POLL_DEAD_AFTER: Final = timedelta(days=14)
"""How long a source may fail before it is given up as gone."""
PUBLISH_RETRIES: Final = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
)
"""Waits before a publication's further tries."""
ASKED_AT_LEAST: Final = timedelta(seconds=30)
"""The least wait before a third or later try, even if a platform asks for less."""
PROCESSING_MOST: Final = timedelta(hours=6)
"""How long a platform may process a post before it is given up; nothing of it is public then."""
LATE_AFTER: Final = timedelta(minutes=1)
"""How late a publication may be before pages and figures call it late: what is due waits for a worker first."""
MAKING_LATE_AFTER: Final = timedelta(hours=1)
"""How long an item may be in the making before it is shown as late."""
OVERDUE_TOLD_AFTER: Final = timedelta(minutes=15)
"""How late a waiting publication may be before people are notified: the first retries take less."""
UNKNOWN_TOLD_AFTER: Final = timedelta(hours=1)
"""How long a publication with an unknown outcome is looked up before people are notified."""
PLATFORM_SETTLES: Final = timedelta(minutes=1)
"""How long a platform that declares no time of its own may still process a call after the call's deadline, as web
servers do whose caller has gone; only after that does it count that the platform doesn't have the post.
"""
OUTLET_PER_DAY_MOST: Final = 1000
"""The highest cap of posts in 24 hours that an outlet may be given."""
OUTLET_GAP_MINUTES_MOST: Final = 7 * 24 * 60
"""Minutes of the longest gap between two posts that an outlet may be given."""
REMOVAL_RETRIES: Final = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=30))
"""Waits before further tries to take a post back; it may be asked for any number of times."""
RECONCILE_EVERY: Final = (
    timedelta(seconds=5),
    timedelta(seconds=30),
    timedelta(minutes=5),
    *[timedelta(minutes=15)] * 4,
    timedelta(hours=1),
)
"""Waits before the lookups of an unknown outcome; the last one repeats."""
MAIL_RETRIES: Final = (
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
    timedelta(hours=4),
    timedelta(hours=12),
    timedelta(hours=24),
)
"""Waits before a newsletter's further tries at one recipient whose server says "not now"."""
MAIL_SESSION_WAITS: Final = (
    timedelta(minutes=1),
    timedelta(minutes=5),
    timedelta(minutes=15),
    timedelta(hours=1),
)
"""Waits after a session with a newsletter's mail server that failed; the last one repeats."""
MAIL_FAILURES_TOLD: Final = 4
"""Sessions in a row that fail before people are notified of a newsletter's failure."""
MAIL_SPREAD_AT_ONCE: Final = 500
"""Recipients of a newsletter whose deliveries are created in one transaction."""
HIT_COUNTS_KEPT: Final = timedelta(days=400)
"""How long counts of clicks and feed fetches are kept: longer than a query may reach."""
MAIL_DELIVERIES_KEPT: Final = timedelta(days=90)
"""How long each recipient's delivery of a newsletter is kept; the counts stay with the mailing."""
SUBSCRIBERS: Final = 100_000
"""Addresses on one outlet's list."""
SUBSCRIBERS_IMPORTED: Final = 10_000
"""Addresses of one import."""
SUBSCRIBERS_IMPORT_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the file of an import."""
SUBSCRIBERS_UNCONFIRMED_KEPT: Final = timedelta(days=30)
"""How long an address that never confirmed is kept."""
CONFIRMATION_EVERY: Final = timedelta(hours=1)
"""How often an address can be asked for confirmation, however often the form is sent."""
SUBSCRIBE_CALLS: Final = "20/h"
"""Sign-ups to newsletters from one client address."""
SUBSCRIBE_CALLS_OF_LIST: Final = "600/h"
"""Sign-ups to one newsletter by its public form, from all addresses together."""
BOUNCE_BYTES: Final = 1024 * 1024
"""Bytes of a bounce report."""
GENERATION_TRIES: Final = 5
"""Tries of one generation before it ends as failed: a crash loop must not run forever."""
MODEL_RETRIES: Final = (
    timedelta(seconds=30),
    timedelta(minutes=1),
    timedelta(minutes=2),
    timedelta(minutes=5),
    timedelta(minutes=15),
)
"""Waits before an unavailable model is asked again, if it names no time; the last one repeats."""
MODEL_PATIENCE: Final = timedelta(hours=24)
"""How long a run waits for an unavailable model before it ends as failed."""
BATCH_GATHER: Final = timedelta(minutes=1)
"""How long calls that may wait are gathered before they are sent as one batch."""
BATCH_CALLS: Final = 100
"""Calls of one batch; more are sent in the next."""
BATCH_CALLS_READ: Final = 300
"""Calls that are considered when a batch is put together."""
BATCH_HOURS: Final = 24
"""The most hours that a source may let its runs wait for the cheaper answer."""
BATCH_POLL: Final = timedelta(minutes=2)
"""How often the state of a sent batch is requested."""
BATCH_PATIENCE: Final = timedelta(days=2)
"""How long a sent batch whose state can't be read is kept open."""
MODEL_BATCHES_KEPT: Final = timedelta(days=30)
"""How long ended batches are kept; their costs stay recorded."""

# --- Brand lane ------------------------------------------------------------------------------------------------------

PERSONA_TEXT_CHARACTERS: Final = 10_000
"""Characters of each of a persona's two texts; every draft's prompt holds them."""
BANNED_WORDS: Final = 200
"""Words and phrases that a persona may ban."""
BANNED_WORD_CHARACTERS: Final = 80
"""Characters of a banned word or phrase."""
REQUIRED_STRUCTURES: Final = 20
"""Structures that a persona may require."""
STRUCTURE_CHARACTERS: Final = 1000
"""Characters of a required structure in one's own words."""
REFERENCE_POSTS: Final = 20
"""Reference posts of a persona; three to five do most of it."""
REFERENCE_POST_CHARACTERS: Final = 5000
"""Characters of a reference post."""
APPROVED_LINES: Final = 300
"""Approved lines of a persona: without a model a daily lane uses up thirty a month."""
APPROVED_LINE_CHARACTERS: Final = 600
"""Characters of an approved line; what doesn't fit an engine is passed over by it, never cut."""
PERSONA_LINKS: Final = 20
"""Links that a persona may name as its own."""
PERSONAS: Final = 50
"""Personas of a workspace."""
PERSONA_DRAFTS_AT_ONCE: Final = 3
"""Drafts of personas that one workspace may have under way: each reads a site and may cost a call to a model."""
PERSONA_DRAFTS_KEPT: Final = timedelta(days=7)
"""How long a draft of a persona is kept; what was saved of it stays in the persona."""
PERSONA_DRAFT_PATIENCE: Final = timedelta(minutes=2)
"""The longest single wait for a model while a person waits for a draft; after it they are told."""
DRAFT_POSTS: Final = 100
"""Past posts that may be pasted for one draft of a persona."""
TOPICS: Final = 1000
"""Topics of a workspace's pool."""
TOPIC_TITLE_CHARACTERS: Final = 300
"""Characters of a topic's title."""
TOPIC_NOTES_CHARACTERS: Final = 5000
"""Characters of a topic's notes."""
TOPIC_ANGLES: Final = 20
"""Angles of a topic."""
ANGLE_CHARACTERS: Final = 200
"""Characters of an angle."""
TOPIC_EVIDENCE: Final = 10
"""Links, or quotes with their link, that back a topic."""
EVIDENCE_CHARACTERS: Final = 2000
"""Characters of the text of one piece of evidence."""
TOPIC_WEIGHT: Final = 100
"""The greatest weight of a topic; the least is 1."""
TOPIC_COOLDOWN_DAYS: Final = 365
"""The longest rest of a topic and angle."""
TOPIC_COOLDOWN_DAYS_DEFAULT: Final = 14
"""How long a topic and angle rest by default."""
TOPICS_ELIGIBLE_LEAST: Final = 7
"""With fewer topics to pick from, people are notified: a daily lane uses them up within a week."""
LANE_MEMORY: Final = timedelta(days=90)
"""How far back a lane's text is compared with what its persona has said."""
LANE_LIKENESS: Final = 0.35
"""From this share of common three-word sequences on, two texts count as the same."""
REPETITION_ITEMS: Final = 500
"""A workspace's newest items that a draft is compared with."""
REPETITION_CHARACTERS: Final = 2_000
"""Characters of each of these items that are compared."""
REPETITION_LIKENESS: Final = 0.5
"""From this share of common five-character sequences on, a draft repeats an item."""
REPETITION_OPENINGS: Final = 20
"""Newest items whose first four words a draft may not begin with."""
COPYING_LIKENESS: Final = 0.35
"""From this share on, a model's text counts as copied from its source, which the reviewer is shown."""
LANE_FURTHER_TOPICS: Final = 2
"""How many further topics a run tries when its text is too similar to earlier ones."""
LANE_TITLES_SHOWN: Final = 10
"""Newest titles of a persona that a model is told not to repeat."""
LANE_DELISTED_WAIT: Final = timedelta(minutes=10)
"""How often a lane checks again whether its workspace has access."""
PLAN_DAYS: Final = 31
"""The most days that one plan fills."""
PLAN_ENTRIES: Final = 100
"""The most publications that one plan schedules, all of them in one transaction."""
PLAN_CANDIDATES: Final = 200
"""The newest ready items among which a plan chooses."""
PLAN_LANES: Final = 20
"""The most outlets that one plan fills."""
PLANS_KEPT: Final = timedelta(days=90)
"""How long a plan can be read and undone."""
SERIES_MOST: Final = 50
"""Series of digests in a workspace."""
SERIES_WINDOW_DAYS: Final = 31
"""The greatest age in days of a raw item in a digest."""
SERIES_LOOKED_AT: Final = 200
"""The newest raw items of a series' window that a digest is chosen from."""
SERIES_MEMORY: Final = timedelta(days=90)
"""For how long a digest leaves out what is similar to an earlier digest of the series."""
SERIES_SHOWN: Final = 10
"""Times of a series that are shown with it: upcoming ones, and the last ones with their outcome."""
RECURRENCES_MOST: Final = 200
"""Recurring items of a workspace."""
RECURRING_DAYS_MOST: Final = 366
"""The most days between two times of a recurring item."""
RECURRING_PAUSED_TIMES: Final = 3
"""Times in a row at which a recurring item's source is paused before the recurrence stops itself."""
RECURRING_SHOWN: Final = 10
"""The last times of a recurring item that are shown with it."""
