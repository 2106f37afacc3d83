<?php
// Where the tests' environment says. Keys are constant, and nothing is cached outside of the database.
$wgSitename = 'A wiki';
$wgScriptPath = '/w';
$wgServer = 'http://example.org';
$wgDBtype = 'mysql';
$wgDBserver = getenv('DB_HOST') . ':' . getenv('DB_PORT');
$wgDBname = getenv('DB_NAME');
$wgDBuser = getenv('DB_USER');
$wgDBpassword = getenv('DB_PASSWORD');
$wgDBTableOptions = 'ENGINE=InnoDB, DEFAULT CHARSET=binary';
$wgMainCacheType = CACHE_NONE;
$wgLocalisationCacheConf['store'] = 'db';
$wgSecretKey = 'a key';
$wgUpgradeKey = 'another';
$wgShowExceptionDetails = true;
wfLoadSkin('Vector');
