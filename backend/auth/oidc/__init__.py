"""Login through an identity provider: OpenID Connect, authorization code with PKCE."""
