"""Keys and tokens that their vendor gave a shape of their own, after what the vendors document.

One line a shape. A group, where there is one, is the secret without the name that it needs beside it. Keys that are
meant to be published, such as Stripe's `pk_`, Mapbox's `pk.` and PostHog's `phc_`, are left out. Vendors whose keys are
digits and letters without a mark are known by their name (`secret_words.py`).
"""

from __future__ import annotations

from typing import Final

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_ALONE: Final = r"(?:^|[^\w.-])"
"""Before a mark that also ends other names, such as those of files and of cached things."""

SHAPES: Final = (
    # Clouds and hosts.
    ("AWS Access Key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    ("AWS Bedrock API Key", r"(?:ABSKQmVkcm9ja0FQSUtleS|bedrock-api-key-)[A-Za-z0-9+/=]{60,}"),
    ("Google API Key", r"AIza[0-9A-Za-z_-]{35}"),
    ("Google OAuth Secret", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    ("Google OAuth Token", r"ya29\.[A-Za-z0-9_-]{60,}"),
    ("Azure Client Secret", r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("Azure Shared Access Signature", r"[?&;]sig=([A-Za-z0-9%+/]{43,90}(?:=|%3[Dd])?)"),
    ("Azure Shared Access Key", r"SharedAccessKey=([A-Za-z0-9+/]{43}=)"),
    ("Alibaba Access Key", r"LTAI[A-Za-z0-9]{20}"),
    ("Yandex Key", r"AQVN[A-Za-z0-9_-]{35,38}|t1\.[A-Za-z0-9_-]{1,400}={0,2}\.[A-Za-z0-9_-]{86}={0,2}"),
    ("DigitalOcean Token", r"do[oprt]_v1_[a-f0-9]{64}"),
    ("Heroku Key", r"HRKU-AA[A-Za-z0-9_-]{58}"),
    ("Scalingo Token", r"tk-us-[A-Za-z0-9_-]{48}"),
    ("Cloudflare Origin Key", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    ("Netlify Token", r"nfp_[A-Za-z0-9]{36}"),
    ("Vercel Token", r"vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{24,40}"),
    ("Fly Token", r"fo1_[\w-]{43}|fm[12][ar]?_[A-Za-z0-9+/]{100,}={0,3}"),
    ("OpenShift Token", r"sha256~[A-Za-z0-9_-]{43}"),
    ("Tailscale Key", r"tskey-[a-z]{3,10}-[A-Za-z0-9]{6,24}-[A-Za-z0-9]{20,64}"),
    ("Defined Networking Token", r"dnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    # Source code, packages, builds.
    ("GitHub Token", r"gh[oprsu]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ("GitLab Token", r"gl(?:pat|dt|ft|soat|rt|rtr|ptt|cbt|oas|imt|agent|ffct)-[A-Za-z0-9_.-]{20,64}"),
    ("GitLab Runner Token", r"GR1348941[A-Za-z0-9_-]{20}"),
    ("Bitbucket Token", r"ATBB[A-Za-z0-9]{32,40}"),
    ("Atlassian Token", r"AT(?:ATT|CTT)3[A-Za-z0-9_=-]{180,250}"),
    ("npm Token", r"npm_[A-Za-z0-9]{36}"),
    ("RubyGems Key", r"rubygems_[a-f0-9]{48}"),
    ("Clojars Token", r"CLOJARS_[A-Za-z0-9]{60}"),
    ("crates.io Token", rf"{_ALONE}(cio[A-Za-z0-9]{{32}})"),
    ("Docker Token", r"dckr_[op]at_[A-Za-z0-9_-]{24,40}"),
    ("Artifactory Key", r"AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59}"),
    ("Buildkite Token", r"bk[a-z]{2}_[a-f0-9]{40}"),
    ("CircleCI Token", r"CCI(?:PAT|PRJ)_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    ("Harness Token", r"[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    ("Octopus Key", rf"{_ALONE}(API-[A-Z0-9]{{26}})"),
    ("Prefect Key", r"pnu_[A-Za-z0-9]{36}"),
    ("Pulumi Token", r"pul-[a-f0-9]{40}"),
    ("Terraform Token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}"),
    ("Infracost Key", rf"{_ALONE}(ico-[A-Za-z0-9]{{32}})"),
    ("Sourcegraph Token", r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    ("SonarQube Token", r"sq[apu]_[a-f0-9]{40}"),
    ("Postman Key", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("ReadMe Key", r"rdme_[a-z0-9]{70}"),
    ("WakaTime Key", rf"waka_{_UUID}"),
    ("SettleMint Token", r"sm_[aps]at_[A-Za-z0-9]{16}"),
    # Models.
    ("OpenAI Key", r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{48})"),
    ("Anthropic Key", r"sk-ant-[a-z]{3,8}\d\d-[A-Za-z0-9_-]{60,}"),
    ("OpenRouter Key", r"sk-or-v1-[0-9a-f]{64}"),
    ("DeepSeek Key", rf"{_ALONE}(sk-[0-9a-f]{{32}})"),
    ("Groq Key", r"gsk_[A-Za-z0-9]{52}"),
    ("xAI Key", r"xai-[A-Za-z0-9]{80}"),
    ("Perplexity Key", r"pplx-[A-Za-z0-9]{48}"),
    ("Replicate Token", r"r8_[A-Za-z0-9]{37}"),
    ("Hugging Face Token", r"(?:hf|api_org)_[A-Za-z]{34}"),
    ("NVIDIA Key", r"nvapi-[A-Za-z0-9_-]{60,70}"),
    ("Cerebras Key", r"csk-[a-z0-9]{48}"),
    ("Fireworks Key", rf"{_ALONE}(fw_[A-Za-z0-9]{{22,24}})"),
    ("ElevenLabs Key", rf"{_ALONE}(sk_[0-9a-f]{{48}})"),
    ("LangSmith Key", r"lsv2_[ps][kt]_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("Langfuse Key", rf"sk-lf-{_UUID}"),
    ("Pinecone Key", r"pcsk_[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,70}"),
    ("Tavily Key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{32}"),
    ("Firecrawl Key", rf"{_ALONE}(fc-[0-9a-f]{{32}})"),
    # Chat, mail, documents.
    ("Slack Token", r"xox[abeoprs]-(?:[0-9]+-){1,4}[A-Za-z0-9]{10,}|xapp-\d-[A-Z0-9]+-\d+-[A-Za-z0-9]{20,}"),
    ("Slack Configuration Token", r"xoxe(?:\.xox[bp])?-\d-[A-Za-z0-9]{140,}"),
    ("Slack Webhook", r"https?://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{30,}"),
    ("Teams Webhook", r"https://[a-z0-9-]+\.webhook\.office\.com/webhookb2/[0-9a-f@-]{73}/\w+/[0-9a-f]{32}"),
    ("Discord Webhook", r"https://discord(?:app)?\.com/api/webhooks/\d{17,20}/[A-Za-z0-9_-]{60,}"),
    ("Mailgun Key", rf"{_ALONE}(key-[0-9a-f]{{32}})"),
    ("Brevo Key", r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("Resend Key", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}"),
    ("Notion Token", r"ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43}"),
    ("Linear Key", r"lin_(?:api|oauth)_[A-Za-z0-9]{40,64}"),
    ("Asana Token", r"2/\d{10,20}/\d{10,20}:[0-9a-f]{32}"),
    ("Airtable Token", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    ("Typeform Token", r"tfp_[A-Za-z0-9_.=-]{44,60}"),
    ("Contentful Token", r"CFPAT-[A-Za-z0-9_-]{43}"),
    ("Figma Token", r"fig[dour]_[A-Za-z0-9_-]{40,}"),
    ("Frame.io Token", r"fio-u-[A-Za-z0-9_=-]{64}"),
    ("Adobe Secret", r"p8e-[A-Za-z0-9]{32}"),
    ("Dropbox Token", r"sl\.[A-Za-z0-9_-]{130,}"),
    ("HubSpot Token", rf"pat-(?:na|eu|ap)\d-{_UUID}"),
    # Data, measuring, money.
    ("Databricks Token", r"dapi[a-f0-9]{32}(?:-\d)?"),
    ("PlanetScale Token", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,64}"),
    ("Supabase Key", r"sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{31}"),
    ("ClickHouse Key", rf"{_ALONE}(4b1d[A-Za-z0-9]{{38}})"),
    ("Grafana Token", r"glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|(?:glc_|eyJrIjoi)[A-Za-z0-9+/]{32,}={0,3}"),
    ("New Relic Key", r"NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9_-]{32}"),
    ("Dynatrace Token", r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("Sentry Token", r"sntrys_eyJ[A-Za-z0-9+/]{40,}={0,2}_[A-Za-z0-9+/]{43}|sntryu_[a-f0-9]{64}"),
    ("PostHog Key", r"ph[sx]_[A-Za-z0-9]{40,50}"),
    ("Mapbox Secret", r"sk\.eyJ1[A-Za-z0-9]{40,100}\.[A-Za-z0-9_-]{22}"),
    ("MaxMind Key", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("Stripe Key", r"(?:[sr]k_(?:live|test|prod)|whsec)_[0-9A-Za-z]{16,}"),
    ("Square Token", r"(?:EAAA|sq0atp-)[A-Za-z0-9_-]{22,60}"),
    ("Shopify Token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("Shippo Token", r"shippo_(?:live|test)_[a-f0-9]{40}"),
    ("EasyPost Key", r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("Duffel Token", r"duffel_(?:live|test)_[A-Za-z0-9_=-]{43}"),
    ("Flutterwave Key", r"FLWSECK(?:_TEST)?-[a-h0-9]{12,32}-X"),
    ("Lob Key", rf"{_ALONE}((?:live|test)_[a-f0-9]{{35}})"),
    ("Plaid Token", rf"access-(?:sandbox|development|production)-{_UUID}"),
    # People and vaults.
    ("Facebook Token", r"\d{13,17}\|[A-Za-z0-9_-]{27}|EAA[CM][A-Za-z0-9]{100,}"),
    ("42 Secret", r"s-s4t2(?:ud|af)-[a-f0-9]{64}"),
    ("Authress Key", r"(?:sc|ext|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[\w+/=-]{30,120}"),
    ("Vault Token", r"hv[sb]\.[A-Za-z0-9_-]{90,}|s\.[A-Za-z0-9]{24}"),
    ("Doppler Token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.]{40,60}"),
    ("1Password Token", r"ops_eyJ[A-Za-z0-9+/]{250,}={0,3}|A3-[A-Z0-9]{6}-[A-Z0-9]{6}-?[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3}"),
    ("age Secret Key", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
)  # fmt: skip

NAMES: Final = (
    "adafruit|adobe|airtable|algolia|amplitude|asana|atlassian|auth0|bitbucket|bittrex|braintree|cloudflare|cloudinary"
    "|codecov|cohere|coinbase|confluent|contentful|coveralls|datadog|deepgram|dropbox|droneci|etsy|facebook|fastly|finicity"
    "|finnhub|flickr|freshbooks|gitter|gocardless|heroku|hubspot|intercom|jfrog|jira|kraken|kucoin|launchdarkly|linkedin"
    "|looker|mailchimp|mailgun|mapbox|mattermost|meraki|messagebird|mistral|netlify|new_?relic|nytimes|okta|openweather"
    "|pagerduty|paypal|plaid|postmark|pusher|rapid_?api|rollbar|sendbird|sendgrid|sentry|shodan|snyk|sonar(?:qube)?"
    "|sourcegraph|splunk|squarespace|sumo_?logic|travis(?:ci)?|trello|twilio|twitch|twitter|typeform|vercel|wandb|yandex"
    "|zendesk"
)
"""Vendors whose keys are digits and letters without a mark: a setting of this name likely holds one of theirs."""
