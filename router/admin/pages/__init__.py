"""The page of the admin address: server-rendered views of what `router.admin.insight` tells."""
